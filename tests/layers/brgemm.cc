// SPDX-License-Identifier: Apache-2.0
// Products where no code is generated: the order of sums is the definition's, to the bit.
#include "core/device/cpu/brgemm.h"

#include <gtest/gtest.h>

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

/// Whether a product is that of the definition: i, then k, each product rounded before it is added.
bool is_exact(const Case& of) {
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
          sum += as[size_t(i)][k * lda + row] * bs[size_t(i)][rows ? k * ldb + col : col * ldb + k];
        }
      }
    }
  }
  Brgemm(of.m, of.n, of.k, lda, ldb, ldc, of.add, of.form)(as.data(), bs.data(), c.data(),
                                                           of.count);
  return c == expected;
}

bool all_are_exact() {
  bool exact = true;
  for (int64_t m : {1, 7, 8, 15, 16, 31, 40}) {
    for (int64_t n : {1, 3, 4, 9}) {
      for (int64_t k : {1, 5, 128, 300}) {
        for (const bool add : {false, true}) {
          for (const auto form : {Brgemm::B::kColumns, Brgemm::B::kRows}) {
            exact = exact && is_exact({m, n, k, 1, add, form}) && is_exact({m, n, k, 3, add, form});
          }
        }
      }
    }
  }
  return exact;
}

TEST(Brgemm, WithoutGeneratedCodeSumsAreInOrder) {
  if (instruction_set() == "generic") {
    EXPECT_TRUE(all_are_exact());
    return;
  }
  // The instruction set is the process's.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::exit(use_instruction_set("generic").ok() && all_are_exact() ? 0 : 1),
              ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace cafetiere
