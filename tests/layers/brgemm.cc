// SPDX-License-Identifier: Apache-2.0
// Products: the order of sums is the definition's, to the bit.
#include "core/device/cpu/brgemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <vector>

#include "core/device/isa.h"

namespace cafetiere {
namespace {

/// Values whose sums depend on their order.
std::vector<float> values(int64_t count) {
  std::vector<float> all(static_cast<size_t>(count));
  for (size_t i = 0; i < all.size(); ++i) all[i] = 1.F / float(i * 7919 % 1009 + 1) - 0.01F;
  return all;
}

struct Case {
  int64_t m, n, k, count;
  bool add;
  Brgemm::B form;
};

/// Whether a product is that of the definition: i, then k, each product rounded before it is added,
/// unless multiply-adds are fused.
bool is_exact(const Case& of, bool fused) {
  const int64_t lda = of.m + 3, ldc = of.m + 1;
  const bool rows = of.form == Brgemm::B::kRows;
  const int64_t ldb = (rows ? of.n : of.k) + 2;
  const int64_t a_size = lda * of.k, b_size = ldb * (rows ? of.k : of.n);
  const auto a = values(a_size * of.count), b = values(b_size * of.count);
  auto c = values(ldc * of.n), expected = c;
  std::vector<const float*> as, bs;
  for (int64_t i = 0; i < of.count; ++i) {
    as.push_back(a.data() + i * a_size);
    bs.push_back(b.data() + i * b_size);
  }
  for (int64_t col = 0; col < of.n; ++col) {
    for (int64_t row = 0; row < of.m; ++row) {
      float& sum = expected[size_t(col * ldc + row)];
      if (!of.add) sum = 0;
      for (int64_t i = 0; i < of.count; ++i) {
        for (int64_t k = 0; k < of.k; ++k) {
          const float x = as[size_t(i)][k * lda + row];
          const float y = bs[size_t(i)][rows ? k * ldb + col : col * ldb + k];
          sum = fused ? std::fma(x, y, sum) : sum + x * y;
        }
      }
    }
  }
  Brgemm(of.m, of.n, of.k, lda, ldb, ldc, of.add, of.form)(as.data(), bs.data(), c.data(),
                                                           of.count);
  return c == expected;
}

bool all_are_exact(bool fused) {
  bool exact = true;
  for (int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 10, 15, 16, 31, 40}) {
    for (int64_t n : {1, 3, 4, 9, 13}) {
      for (int64_t k : {1, 5, 128, 300}) {
        for (const bool add : {false, true}) {
          for (const auto form : {Brgemm::B::kColumns, Brgemm::B::kRows}) {
            exact = exact && is_exact({m, n, k, 1, add, form}, fused) &&
                    is_exact({m, n, k, 3, add, form}, fused);
          }
        }
      }
    }
  }
  return exact;
}

TEST(Brgemm, WithoutGeneratedCodeSumsAreInOrder) {
  if (instruction_set() == "generic") {
    EXPECT_TRUE(all_are_exact(false));
    return;
  }
  // The instruction set is the process's.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::exit(use_instruction_set("generic").ok() && all_are_exact(false) ? 0 : 1),
              ::testing::ExitedWithCode(0), "");
}

TEST(Brgemm, Avx2CodeAddsFusedProductsInOrder) {
  if (!has_wide_vectors(instruction_set()) && instruction_set() != "avx2") {
    GTEST_SKIP() << "needs AVX2";
  }
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::exit(use_instruction_set("avx2").ok() && all_are_exact(true) ? 0 : 1),
              ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace cafetiere
