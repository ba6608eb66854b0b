// SPDX-License-Identifier: Apache-2.0
// The loop shared by all update rules: one pass over weights, gradient and history.
#pragma once

#include <cstddef>

#include "core/solver/update_rule.h"

namespace cafetiere {

/// The term that weight decay adds to a gradient.
enum class Decay { kNone, kL1, kL2 };

/// The factor of the decay: the weight or, with L1, its sign.
inline float decay_term(float w, bool l1) { return l1 ? static_cast<float>((w > 0) - (w < 0)) : w; }

template <Decay kDecay, class Delta>
void pass(const UpdateArgs& args, const Delta& delta) {
  const size_t n = args.weights.size();
  float* __restrict weights = args.weights.data();
  const float* __restrict gradient = args.gradient.data();
  float* __restrict first = args.history[0].data();
  float* __restrict second = args.history[1].data();
  const float scale = args.gradient_scale;
  const float decay = args.decay;
  for (size_t i = 0; i < n; ++i) {
    const float w = weights[i];
    float g = gradient[i] * scale;
    if constexpr (kDecay != Decay::kNone) g = decay * decay_term(w, kDecay == Decay::kL1) + g;
    if constexpr (Delta::kHistory == 1) {
      weights[i] = w - delta(g, first[i]);
    } else {
      weights[i] = w - delta(g, first[i], second[i]);
    }
  }
}

/// w -= delta(g, h0[, h1]) for every weight, where g is the scaled gradient plus decay.
/// `Delta::kHistory` is the number of history values it updates.
template <class Delta>
void apply_each(const UpdateArgs& args, const Delta& delta) {
  if (args.decay == 0) {
    pass<Decay::kNone>(args, delta);
  } else if (args.l1) {
    pass<Decay::kL1>(args, delta);
  } else {
    pass<Decay::kL2>(args, delta);
  }
}

}  // namespace cafetiere
