// SPDX-License-Identifier: Apache-2.0
// Groups of similar points, by Lloyd's algorithm (1982), also known as k-means.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cafetiere {

/// Assigns each point, of `size` numbers, to one of `count` groups: the one with the nearest mean.
/// A group may remain empty. `count` is at least 1 and at most the number of points.
std::vector<int32_t> similar_points(std::span<const float> points, int64_t size, int64_t count,
                                    uint64_t seed);

/// For each point the `nearest` of the means, nearest first; the first of those equally near. Both
/// consist of `size` numbers each; `nearest` is at most the number of means.
std::vector<int32_t> nearest_means(std::span<const float> points, std::span<const float> means,
                                   int64_t size, int64_t nearest);

}  // namespace cafetiere
