// SPDX-License-Identifier: Apache-2.0
// Local response normalisation with channels innermost. The gradient recomputes the sums, which is
// cheaper than keeping them.
#pragma once

#include <cstdint>

#include "core/device/geometry.h"

namespace cafetiere {

/// Consecutive pixels of `channels` numbers, float or bfloat16.
struct LrnPixels {
  LrnGeometry g;
  int64_t channels;

  static constexpr int64_t kMostChannels = 1024, kMostWindow = 129;
  /// Whether a pixel and its window fit into the kernels' buffers.
  static bool fits(const LrnGeometry& g, int64_t channels) {
    return channels <= kMostChannels && g.size <= kMostWindow;
  }
};

/// The passes over pixels; all implementations give bitwise the same results.
template <class T>
struct LrnPasses {
  /// y = x s^-beta with s = k + alpha / size * the sum of x^2 over the window.
  void (*forward)(const LrnPixels& p, int64_t pixels, const T* x, T* y);
  /// dx = dy s^-beta - 2 alpha beta / size x * the sum of dy x s^(-beta - 1) over the window.
  void (*backward)(const LrnPixels& p, int64_t pixels, const T* x, const T* dy, T* dx);
};

/// The implementation for the instruction set in use.
template <class T>
LrnPasses<T> lrn_passes();
/// For comparison; the second one requires AVX-512.
template <class T>
LrnPasses<T> plain_lrn_passes();
template <class T>
LrnPasses<T> wide_lrn_passes();

}  // namespace cafetiere
