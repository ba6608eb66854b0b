// SPDX-License-Identifier: Apache-2.0
#include "core/data/exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace cafetiere {
namespace {

constexpr int kDigitBits = 32;
constexpr int64_t kMask = (int64_t{1} << kDigitBits) - 1;
constexpr int64_t kCarryAfter = int64_t{1} << 30;  // 2^30 additions below 2^32 fit into 63 bits
constexpr int kLeastExponent = -1074;

void carry_over(std::array<int64_t, ExactSum::kDigits>& digits) {
  for (size_t i = 0; i + 1 < digits.size(); ++i) {
    digits[i + 1] += digits[i] >> kDigitBits;
    digits[i] &= kMask;
  }
}

}  // namespace

void ExactSum::add(double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const int biased = int(bits >> 52) & 0x7ff;
  const uint64_t mantissa = (bits & 0xfffffffffffffu) | (biased ? uint64_t{1} << 52 : 0);
  const int place = biased ? biased - 1 : 0;  // of the mantissa's last bit, relative to 2^-1074
  const auto shifted = static_cast<unsigned __int128>(mantissa) << (place % kDigitBits);
  const int64_t sign = bits >> 63 ? -1 : 1;
  int64_t* digit = digits_.data() + place / kDigitBits;
  digit[0] += sign * (int64_t(shifted) & kMask);
  digit[1] += sign * (int64_t(shifted >> kDigitBits) & kMask);
  digit[2] += sign * int64_t(shifted >> (2 * kDigitBits));
  if (++pending_ == kCarryAfter) carry();
}

void ExactSum::add_square(double x) {
  const double high = x * x;
  add(high);
  add(std::fma(x, x, -high));
}

void ExactSum::add(const ExactSum& other) {
  carry();
  const auto theirs = other.digits();
  for (size_t i = 0; i < digits_.size(); ++i) digits_[i] += theirs[i];
  pending_ = 1;
}

std::array<int64_t, ExactSum::kDigits> ExactSum::digits() const {
  auto digits = digits_;
  carry_over(digits);
  return digits;
}

ExactSum ExactSum::of(std::span<const int64_t, kDigits> digits) {
  ExactSum sum;
  std::ranges::copy(digits, sum.digits_.begin());
  sum.carry();
  return sum;
}

void ExactSum::carry() {
  carry_over(digits_);
  pending_ = 0;
}

ExactSum::Pair ExactSum::value() const {
  auto digits = this->digits();
  const bool negative = digits.back() < 0;
  if (negative) {
    for (int64_t& digit : digits) digit = -digit;
    carry_over(digits);
  }
  int top = kDigits - 1;
  while (top > 0 && digits[size_t(top)] == 0) --top;
  Pair sum;
  // Five digits have at least 129 bits; the rest is less than half a bit of the pair.
  for (int i = top; i >= std::max(0, top - 4); --i) {
    const double term = std::ldexp(double(digits[size_t(i)]), kDigitBits * i + kLeastExponent);
    const double high = sum.high + term;
    sum.low += term - (high - sum.high);
    sum.high = high;
  }
  const double high = sum.high + sum.low;
  sum = {high, sum.low - (high - sum.high)};
  return negative ? Pair{-sum.high, -sum.low} : sum;
}

}  // namespace cafetiere
