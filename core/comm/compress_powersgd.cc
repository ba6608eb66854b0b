// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/comm/collectives.h"
#include "core/comm/compress.h"

namespace cafetiere {
namespace {

constexpr size_t kLanes = 16;  // partial sums, added in a fixed order

float dot(const float* a, const float* b, size_t n) {
  float lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (size_t l = 0; l < kLanes; ++l) lanes[l] += a[i + l] * b[i + l];
  }
  float sum = 0;
  for (float lane : lanes) sum += lane;
  for (; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void add_scaled(float* to, const float* from, float factor, size_t n) {
  for (size_t i = 0; i < n; ++i) to[i] += factor * from[i];
}

/// Modified Gram-Schmidt on the `rank` columns of p. A column in the span of the others becomes
/// zero.
void orthonormalise(float* p, size_t rows, size_t rank) {
  const auto product = [&](size_t a, size_t b) {
    double sum = 0;
    for (size_t i = 0; i < rows; ++i) sum += double{p[i * rank + a]} * p[i * rank + b];
    return sum;
  };
  for (size_t k = 0; k < rank; ++k) {
    const double before = product(k, k);
    // Twice: for a column near the span of the others, the first remainder is not orthogonal to
    // them yet.
    for (size_t pass = 0; pass < 2 * k; ++pass) {
      const size_t j = pass % k;
      const auto shadow = static_cast<float>(product(j, k));
      for (size_t i = 0; i < rows; ++i) p[i * rank + k] -= shadow * p[i * rank + j];
    }
    const double rest = product(k, k);
    const double scale = rest > 1e-12 * before ? 1 / std::sqrt(rest) : 0;
    for (size_t i = 0; i < rows; ++i) p[i * rank + k] *= static_cast<float>(scale);
  }
}

std::unique_ptr<TreeSum> sum_over_ranks(const Group* group, size_t floats) {
  const int rank = rank_of(group), ranks = size_of(group);
  return std::make_unique<TreeSum>(ShardRange{rank, rank + 1}, ranks, floats, nullptr);
}

}  // namespace

PowerSgd::PowerSgd(Group* group, size_t floats, std::span<const MatrixRange> matrices, int rank,
                   uint64_t seed)
    : Compressor(group, floats), rank_(static_cast<size_t>(std::max(rank, 1))) {
  std::vector<MatrixRange> sorted(matrices.begin(), matrices.end());
  std::ranges::sort(sorted, {}, &MatrixRange::offset);
  size_t covered = 0, q_floats = 0;
  const auto leave_plain = [&](size_t end) {
    if (end > covered) plain_.push_back({covered, 1, end - covered});
  };
  for (const MatrixRange& m : sorted) {
    if (rank_ * (m.rows + m.cols) >= m.rows * m.cols) continue;
    leave_plain(m.offset);
    covered = m.offset + m.rows * m.cols;
    factors_.push_back({m, p_floats_, q_floats});
    p_floats_ += m.rows * rank_;
    q_floats += m.cols * rank_;
  }
  leave_plain(floats);
  size_t plain_floats = 0;
  for (const MatrixRange& m : plain_) plain_floats += m.cols;
  first_.resize(p_floats_ + plain_floats);
  second_.resize(q_floats);
  std::mt19937_64 random(seed);
  for (float& q : second_) {
    q = static_cast<float>(static_cast<double>(random() >> 11) * 0x1p-52 - 1);
  }
  first_sum_ = sum_over_ranks(group, first_.size());
  second_sum_ = sum_over_ranks(group, second_.size());
}

size_t PowerSgd::bytes() const { return (first_.size() + second_.size()) * sizeof(float); }

Status PowerSgd::average(std::span<float> values, TreeSum* sum) {
  if (values.empty()) return {};
  sum->reset();
  CFT_TRY(sum->add(values));
  CFT_TRY(all_reduce(group_, *sum, values));
  const float share = 1.f / static_cast<float>(size_of(group_));
  for (float& v : values) v *= share;
  return {};
}

Status PowerSgd::mean(std::span<float> gradient) {
  if (gradient.size() != error_.size()) {
    return internal_error(fmt::format("PowerSGD: a gradient of {} floats, expected {}",
                                      gradient.size(), error_.size()));
  }
  // M = gradient + error, stored in error_; P = M Q for every matrix, and the plain ranges.
  for (size_t i = 0; i < gradient.size(); ++i) error_[i] += gradient[i];
  for (const auto& [m, p, q] : factors_) {
    for (size_t i = 0; i < m.rows; ++i) {
      for (size_t k = 0; k < rank_; ++k) {
        first_[p + i * rank_ + k] =
            dot(&error_[m.offset + i * m.cols], &second_[q + k * m.cols], m.cols);
      }
    }
  }
  auto plain = first_.begin() + static_cast<ptrdiff_t>(p_floats_);
  for (const MatrixRange& m : plain_) plain = std::copy_n(&error_[m.offset], m.cols, plain);
  CFT_TRY(average(first_, first_sum_.get()));

  // With orthonormal columns of P, Q = transposed P M. This rank sends P Q to the others; the rest
  // of M is its error.
  std::fill(second_.begin(), second_.end(), 0.f);
  for (const auto& [m, p, q] : factors_) {
    orthonormalise(&first_[p], m.rows, rank_);
    for (size_t i = 0; i < m.rows; ++i) {
      for (size_t k = 0; k < rank_; ++k) {
        add_scaled(&second_[q + k * m.cols], &error_[m.offset + i * m.cols],
                   first_[p + i * rank_ + k], m.cols);
      }
    }
    for (size_t i = 0; i < m.rows; ++i) {
      for (size_t k = 0; k < rank_; ++k) {
        add_scaled(&error_[m.offset + i * m.cols], &second_[q + k * m.cols],
                   -first_[p + i * rank_ + k], m.cols);
      }
    }
  }
  CFT_TRY(average(second_, second_sum_.get()));

  for (const auto& [m, p, q] : factors_) {
    float* row = &gradient[m.offset];
    std::fill_n(row, m.rows * m.cols, 0.f);
    for (size_t i = 0; i < m.rows; ++i, row += m.cols) {
      for (size_t k = 0; k < rank_; ++k) {
        add_scaled(row, &second_[q + k * m.cols], first_[p + i * rank_ + k], m.cols);
      }
    }
  }
  plain = first_.begin() + static_cast<ptrdiff_t>(p_floats_);
  for (const MatrixRange& m : plain_) {
    std::copy_n(plain, m.cols, &gradient[m.offset]);
    std::fill_n(&error_[m.offset], m.cols, 0.f);
    plain += static_cast<ptrdiff_t>(m.cols);
  }
  return {};
}

}  // namespace cafetiere
