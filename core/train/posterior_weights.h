// SPDX-License-Identifier: Apache-2.0
// The weights of the candidates of which a posterior mean consists (PosteriorParameter).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cafetiere {

/// The candidates for the row of each value of an embedding: its nearest prototypes and, last, its
/// own row as trained.
struct Candidates {
  int64_t values = 0, prototypes = 0;
  int64_t nearest = 0;             ///< prototypes per value
  std::vector<int32_t> near = {};  ///< values x nearest: their numbers

  int64_t per_value() const { return nearest + 1; }
  int64_t count() const { return values * per_value(); }
};

/// The weight of each candidate, in the order of `likelihood`; the weights of a value add up to 1.
/// `likelihood`: the logarithm of the probability of the value's labels given each candidate. The
/// frequencies of the prototypes are fitted to all values by expectation maximisation.
std::vector<double> posterior_weights(const Candidates& candidates,
                                      std::span<const float> likelihood);

}  // namespace cafetiere
