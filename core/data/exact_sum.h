// SPDX-License-Identifier: Apache-2.0
// ExactSum: a sum of doubles without rounding, so that it does not depend on their order.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace cafetiere {

/// A fixed-point number that holds every finite double (Kulisch's long accumulator): digit i counts
/// 2^(32 i - 1074). Sums of the same numbers are equal, however they were split and merged.
class ExactSum {
 public:
  static constexpr int kDigits = 68;

  /// Adds a finite number.
  void add(double x);
  /// Adds x * x, also where that is no double; both halves of the product count.
  void add_square(double x);
  void add(const ExactSum& other);

  /// The sum rounded to the doubles high + low, |low| <= ulp(high) / 2 but for what rounding both costs:
  /// some 100 bits of it.
  struct Pair {
    double high = 0, low = 0;
  };
  Pair value() const;

  /// The digits after carrying: all but the last in [0, 2^32). Equal sums have equal digits.
  std::array<int64_t, kDigits> digits() const;
  /// The sum that digits() gave.
  static ExactSum of(std::span<const int64_t, kDigits> digits);

 private:
  void carry();

  std::array<int64_t, kDigits> digits_{};
  int64_t pending_ = 0;  // additions since the last carry, each below 2^32 a digit
};

}  // namespace cafetiere
