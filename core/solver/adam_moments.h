// SPDX-License-Identifier: Apache-2.0
// The moment estimates of a gradient used by Adam, AdamW and LAMB.
#pragma once

#include <fmt/format.h>

#include <cmath>

#include "core/base/elementary.h"
#include "core/solver/rules.h"

namespace cafetiere {

/// Running means of a gradient and of its square (Kingma and Ba, 2015): `momentum` is beta 1,
/// `momentum2` beta 2, `delta` epsilon.
struct AdamMoments {
  static constexpr int kHistory = 2;
  float beta1, beta2, epsilon;

  static Result<AdamMoments> create(const caffe::SolverParameter& solver) {
    const auto fits = [](float beta) { return beta >= 0 && beta < 1; };
    if (fits(solver.momentum()) && fits(solver.momentum2())) {
      return AdamMoments{solver.momentum(), solver.momentum2(), solver.delta()};
    }
    return invalid_argument(
        fmt::format("{} needs momentum and momentum2 in [0, 1); they are {} and {}", solver.type(),
                    solver.momentum(), solver.momentum2()));
  }

  void add(float g, float& mean, float& square) const {
    mean = beta1 * mean + (1 - beta1) * g;
    square = beta2 * square + (1 - beta2) * (g * g);
  }
};

/// The direction of a step: the mean over the root mean square, both bias-corrected; epsilon is
/// added after the square root.
struct AdamDirection {
  AdamMoments moments;
  float mean_scale, square_scale;

  /// `iter` is the number of earlier updates.
  AdamDirection(const AdamMoments& m, int iter)
      : moments(m),
        mean_scale(
            static_cast<float>(1 / (1 - elementary::pow(static_cast<double>(m.beta1), iter + 1)))),
        square_scale(
            static_cast<float>(1 / (1 - elementary::pow(static_cast<double>(m.beta2), iter + 1)))) {
  }

  float operator()(float mean, float square) const {
    return mean * mean_scale / (std::sqrt(square * square_scale) + moments.epsilon);
  }
};

}  // namespace cafetiere
