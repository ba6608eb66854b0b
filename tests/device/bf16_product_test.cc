// SPDX-License-Identifier: Apache-2.0
// Products of bfloat16, beside the exact sums of the same numbers and between instruction sets.
#include "core/device/cpu/bf16_product.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/base/bfloat16.h"
#include "core/device/bfloat16.h"
#include "core/device/cpu/bf16_round.h"
#include "core/device/cpu/lane_chunks.h"
#include "core/device/isa.h"

namespace cafetiere {
namespace {

/// Operands of a product whose matrices are wider than what is multiplied.
struct Operands {
  int64_t m, n, k, count, lda, ldb, ldc;
  std::vector<uint16_t> a, b;
  std::vector<float> c;

  Operands(int64_t m, int64_t n, int64_t k, int64_t count)
      : m(m), n(n), k(k), count(count), lda(m + 16), ldb(k + 3), ldc(m + 5) {
    std::mt19937 random{7};
    std::uniform_real_distribution<float> number(-1, 1);
    const auto fill = [&](std::vector<uint16_t>& of, int64_t size) {
      for (int64_t i = 0; i < size; ++i) of.push_back(to_bfloat16(number(random)));
    };
    fill(a, count * a_size());
    fill(b, count * b_size());
    for (int64_t i = 0; i < ldc * n; ++i) c.push_back(number(random));
    if (k % 2 == 0) return;
    for (int64_t i = 0; i < count; ++i) {  // the pair's other half
      for (int64_t row = 0; row < m; ++row)
        a[size_t(i * a_size() + k / 2 * 2 * lda + 2 * row + 1)] = 0;
    }
  }
  int64_t a_size() const { return (k + 1) / 2 * 2 * lda; }
  int64_t b_size() const { return ldb * n; }

  float a_at(int64_t i, int64_t row, int64_t at) const {
    return from_bfloat16(a[size_t(i * a_size() + at / 2 * 2 * lda + 2 * row + at % 2)]);
  }
  float b_at(int64_t i, int64_t at, int64_t col) const {
    return from_bfloat16(b[size_t(i * b_size() + col * ldb + at)]);
  }
  Bf16Product product(bool add) const { return {m, n, k, lda, ldb, ldc, add}; }
  std::vector<float> run(const Bf16Product& product) const {
    std::vector<const uint16_t*> as, bs;
    for (int64_t i = 0; i < count; ++i) {
      as.push_back(a.data() + i * a_size());
      bs.push_back(b.data() + i * b_size());
    }
    std::vector<float> sums = c;
    const bf16::TileScope scope;
    product(as.data(), bs.data(), sums.data(), count);
    return sums;
  }
};

std::vector<Operands> cases() {
  std::vector<Operands> list;
  for (int64_t m : {16, 32, 48}) {
    for (int64_t n : {1, 7, 16, 29, 48}) {
      for (int64_t k : {1, 2, 15, 32, 75, 288, 600}) {
        for (int64_t count : {1, 3}) list.emplace_back(m, n, k, count);
      }
    }
  }
  return list;
}

class Bf16Products : public ::testing::TestWithParam<const char*> {};

TEST_P(Bf16Products, AreTheExactSumsButForRounding) {
  for (const Operands& of : cases()) {
    for (const bool add : {false, true}) {
      const auto sums = of.run(Bf16Product::of_set(GetParam(), of.product(add)));
      for (int64_t col = 0; col < of.n; ++col) {
        for (int64_t row = 0; row < of.ldc; ++row) {
          const size_t at = size_t(col * of.ldc + row);
          if (row >= of.m) {
            ASSERT_EQ(sums[at], of.c[at]) << "what lies beside C";
            continue;
          }
          double exact = add ? double(of.c[at]) : 0, size = std::abs(exact);
          for (int64_t i = 0; i < of.count; ++i) {
            for (int64_t k = 0; k < of.k; ++k) {
              const double term = double(of.a_at(i, row, k)) * double(of.b_at(i, k, col));
              exact += term, size += std::abs(term);
            }
          }
          ASSERT_NEAR(double(sums[at]), exact, size * 1e-6 + 1e-12)
              << of.m << " x " << of.n << " x " << of.k << ", " << of.count;
        }
      }
    }
  }
}

/// An element does not depend on which others are multiplied with it.
TEST_P(Bf16Products, OfAColumnAloneHaveTheSameBits) {
  const Operands all(32, 29, 75, 3);
  const auto together = all.run(Bf16Product::of_set(GetParam(), all.product(true)));
  for (int64_t col = 0; col < all.n; ++col) {
    Operands one = all;
    one.n = 1;
    one.b.clear();
    for (int64_t i = 0; i < all.count; ++i) {
      const auto from = all.b.begin() + i * all.b_size() + col * all.ldb;
      one.b.insert(one.b.end(), from, from + all.ldb);
    }
    one.c.assign(all.c.begin() + col * all.ldc, all.c.begin() + (col + 1) * all.ldc);
    const auto alone = one.run(Bf16Product::of_set(GetParam(), one.product(true)));
    for (int64_t row = 0; row < all.m; ++row) {
      ASSERT_EQ(alone[size_t(row)], together[size_t(col * all.ldc + row)]);
    }
  }
}

TEST_P(Bf16Products, TakeNumbersBelowTheLeastNormalOneAsZero) {
  Operands of(16, 1, 2, 1);
  const float denormal = std::numeric_limits<float>::min() / 4;
  std::fill(of.a.begin(), of.a.end(), to_bfloat16(1.F));
  of.b = {to_bfloat16(denormal), to_bfloat16(denormal), 0, 0, 0};
  const auto sums = of.run(Bf16Product::of_set(GetParam(), of.product(false)));
  EXPECT_EQ(sums[0], 0.F);
}

std::vector<const char*> sets_here() {
  std::vector<const char*> sets{"generic"};
  if (instruction_set() == "avx512_bf16" || instruction_set() == "amx")
    sets.push_back("avx512_bf16");
  if (instruction_set() == "amx") sets.push_back("amx");
  return sets;
}

INSTANTIATE_TEST_SUITE_P(Sets, Bf16Products, ::testing::ValuesIn(sets_here()));

/// The tiles' bytes are the definition's: over 32 k even and odd ones apart, then both added to C.
TEST(Bf16Tiles, SumInTheOrderOfTheInstruction) {
  for (const Operands& of : cases()) {
    const auto sums = of.run(Bf16Product::of_set("generic", of.product(true)));
    for (int64_t col = 0; col < of.n; ++col) {
      for (int64_t row = 0; row < of.m; ++row) {
        float sum = of.c[size_t(col * of.ldc + row)];
        for (int64_t i = 0; i < of.count; ++i) {
          for (int64_t k0 = 0; k0 < of.k; k0 += 32) {
            float part[2] = {0, 0};
            for (int64_t k = k0; k < std::min(of.k, k0 + 32); ++k) {
              part[k % 2] = std::fma(of.b_at(i, k, col), of.a_at(i, row, k), part[k % 2]);
            }
            sum += part[0] + part[1];
          }
        }
        ASSERT_EQ(sums[size_t(col * of.ldc + row)], sum);
      }
    }
  }
}

/// Floats of all kinds: of every size, zeros, denormals, infinities and NaNs.
std::vector<float> floats_of_all_kinds(size_t count) {
  std::mt19937 random{5};
  std::vector<float> list;
  for (const uint32_t bits :
       {0U, 0x80000000U, 1U, 0x80000001U, 0x007fffffU, 0x00800000U, 0x7f7fffffU, 0x7f800000U,
        0xff800000U, 0x7f800001U, 0xffffffffU, 0x3f808000U}) {
    list.push_back(std::bit_cast<float>(bits));
  }
  while (list.size() < count) list.push_back(std::bit_cast<float>(uint32_t(random())));
  return list;
}

TEST(Bf16Round, HasTheBytesOfTheInstruction) {
  const std::vector<float> from = floats_of_all_kinds(4099);
  std::vector<uint16_t> narrowed(from.size());
  narrow(from.data(), int64_t(from.size()), narrowed.data());
  for (size_t i = 0; i < from.size(); ++i) {
    ASSERT_EQ(narrowed[i], flushed_bfloat16(from[i])) << std::bit_cast<uint32_t>(from[i]);
  }
  if (!rounds_by_instruction()) GTEST_SKIP() << "a processor without AVX512-BF16";
  std::vector<float> start = floats_of_all_kinds(32);  // of two NaNs either may be the sum
  for (float& value : start) value = std::isfinite(value) ? value : 1;
  std::vector<uint16_t> addends(64 * from.size() / 16);
  for (size_t i = 0; i < addends.size(); ++i) addends[i] = flushed_bfloat16(float(i % 301) - 150);
  for (int64_t lanes : {1, 7, 16, 20, 32}) {
    const int64_t height = lanes > 16 ? 32 : 16, pixels = int64_t(from.size()) / height - 1;
    for (const float floor : {0.F, -std::numeric_limits<float>::infinity()}) {
      for (const bool adds : {false, true}) {
        const uint16_t* const added = adds ? addends.data() : nullptr;
        const bf16::Rounding how{height, lanes, start.data(), floor, added};
        std::vector<uint16_t> plain(size_t(64 * pixels), 1), fast = plain;
        bf16::Round(false)(how, from.data(), pixels, plain.data(), 64);
        bf16::Round(true)(how, from.data(), pixels, fast.data(), 64);
        ASSERT_EQ(plain, fast) << lanes << " lanes, " << (adds ? "with addends" : "");
      }
    }
  }
}

TEST(Bf16Round, OfEightAtATimeIsThatOfEach) {
  const std::vector<float> from = floats_of_all_kinds(4096);
  for (size_t i = 0; i < from.size(); i += 8) {
    std::array<uint16_t, 8> rounded{};
    store_octet(rounded.data(), load_octet(from.data() + i, 8), 8);
    for (size_t j = 0; j < 8; ++j) ASSERT_EQ(rounded[j], to_bfloat16(from[i + j]));
  }
}

TEST(Bf16Tiles, HaveTheBytesOfAmx) {
  if (instruction_set() != "amx") GTEST_SKIP() << "a processor without AMX";
  for (const Operands& of : cases()) {
    const Bf16Product product = of.product(true);
    EXPECT_EQ(of.run(Bf16Product::of_set("amx", product)),
              of.run(Bf16Product::of_set("generic", product)));
  }
}

}  // namespace
}  // namespace cafetiere
