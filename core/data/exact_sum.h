// SPDX-License-Identifier: Apache-2.0
// ExactSum: a sum of doubles without rounding, hence independent of their order.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace cafetiere {

/// A fixed-point number that can represent every finite double (Kulisch's long accumulator): digit
/// i has the weight 2^(32 i - 1074). Sums of the same numbers are equal however they are split and
/// merged.
class ExactSum {
 public:
  static constexpr int kDigits = 68;

  /// Adds a finite number.
  void add(double x);
  /// Adds x * x without rounding, as the exact sum of two doubles.
  void add_square(double x);
  void add(const ExactSum& other);

  /// The sum rounded to high + low, with |low| <= ulp(high) / 2 except for rounding of both: about
  /// 100 bits of the sum.
  struct Pair {
    double high = 0, low = 0;
  };
  Pair value() const;

  /// The digits after carrying: all but the last are in [0, 2^32). Equal sums have equal digits.
  std::array<int64_t, kDigits> digits() const;
  /// The inverse of digits().
  static ExactSum of(std::span<const int64_t, kDigits> digits);

 private:
  void carry();

  std::array<int64_t, kDigits> digits_{};
  int64_t pending_ = 0;  // additions since the last carry, each below 2^32 per digit
};

}  // namespace cafetiere
