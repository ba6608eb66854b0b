// SPDX-License-Identifier: Apache-2.0
#include "core/train/similar_points.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

namespace cafetiere {
namespace {

/// Means stored by coordinate, so that the distances to many of them are computed at once.
class Means {
 public:
  Means(int64_t size, int64_t count)
      : size_(size),
        count_(count),
        values_(size_t(size * count)),
        norms_(size_t(count)),
        distances_(size_t(count)) {}

  int64_t count() const { return count_; }
  void set(int64_t k, const float* point) {
    norms_[size_t(k)] = 0;
    for (int64_t j = 0; j < size_; ++j) {
      values_[size_t(j * count_ + k)] = point[j];
      norms_[size_t(k)] += point[j] * point[j];
    }
  }

  /// The squared distance to each mean, minus the squared norm of the point.
  std::span<const float> distances(const float* point) {
    std::ranges::copy(norms_, distances_.begin());
    for (int64_t j = 0; j < size_; ++j) {
      const float x = -2 * point[j];
      const float* const mean = values_.data() + j * count_;
      for (int64_t k = 0; k < count_; ++k) distances_[size_t(k)] += x * mean[k];
    }
    return distances_;
  }
  int32_t nearest(const float* point) {
    const auto all = distances(point);
    return int32_t(std::ranges::min_element(all) - all.begin());
  }

 private:
  int64_t size_, count_;
  std::vector<float> values_, norms_, distances_;
};

/// The numbers of `count` of `all` points, drawn without replacement.
std::vector<int64_t> drawn(int64_t all, int64_t count, uint64_t seed) {
  std::vector<int64_t> order(static_cast<size_t>(all));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(seed);
  for (int64_t i = 0; i < count; ++i) {
    std::swap(order[size_t(i)], order[size_t(i + int64_t(random() % uint64_t(all - i)))]);
  }
  order.resize(size_t(count));
  return order;
}

/// Moves each mean to the mean of the points that are nearest to it, unless there are none.
void move_means(std::span<const float> points, int64_t size, std::span<const int64_t> deciding,
                Means& means) {
  std::vector<double> sums(size_t(means.count() * size));
  std::vector<int64_t> members(size_t(means.count()), 0);
  for (const int64_t i : deciding) {
    const float* const x = points.data() + i * size;
    const int32_t k = means.nearest(x);
    ++members[size_t(k)];
    for (int64_t j = 0; j < size; ++j) sums[size_t(k * size + j)] += double(x[j]);
  }
  std::vector<float> mean(static_cast<size_t>(size));
  for (int64_t k = 0; k < means.count(); ++k) {
    if (members[size_t(k)] == 0) continue;
    for (int64_t j = 0; j < size; ++j) {
      mean[size_t(j)] = float(sums[size_t(k * size + j)] / double(members[size_t(k)]));
    }
    means.set(k, mean.data());
  }
}

}  // namespace

std::vector<int32_t> similar_points(std::span<const float> points, int64_t size, int64_t count,
                                    uint64_t seed) {
  constexpr int kRounds = 25;
  constexpr int64_t kMostDeciding = 20'000;
  const int64_t all = int64_t(points.size()) / size;
  const auto deciding = drawn(all, std::min(all, std::max(count, kMostDeciding)), seed);
  Means means(size, count);
  for (int64_t k = 0; k < count; ++k) means.set(k, points.data() + deciding[size_t(k)] * size);
  for (int round = 0; round < kRounds; ++round) move_means(points, size, deciding, means);
  std::vector<int32_t> group;
  for (int64_t i = 0; i < all; ++i) group.push_back(means.nearest(points.data() + i * size));
  return group;
}

std::vector<int32_t> nearest_means(std::span<const float> points, std::span<const float> means,
                                   int64_t size, int64_t nearest) {
  Means all(size, int64_t(means.size()) / size);
  for (int64_t k = 0; k < all.count(); ++k) all.set(k, means.data() + k * size);
  std::vector<int32_t> order(static_cast<size_t>(all.count())), near;
  for (size_t at = 0; at < points.size(); at += size_t(size)) {
    const auto far = all.distances(points.data() + at);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::partial_sort(order, order.begin() + nearest, [&](int32_t a, int32_t b) {
      return std::pair(far[size_t(a)], a) < std::pair(far[size_t(b)], b);
    });
    near.insert(near.end(), order.begin(), order.begin() + nearest);
  }
  return near;
}

}  // namespace cafetiere
