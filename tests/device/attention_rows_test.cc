// SPDX-License-Identifier: Apache-2.0
// Attention's softmax, and costly element-wise functions, with AVX-512: the bits of the plain forms.
#include "core/device/cpu/attention_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/device/isa.h"
#include "core/device/vector_math.h"
#include "core/device/wide_map.h"
#include "tests/device/drawn.h"

namespace cafetiere {
namespace {

TEST(AttentionRows, OfWideVectorsHaveTheBitsOfThePlainOnes) {
  if (!has_wide_vectors(instruction_set())) GTEST_SKIP() << "needs AVX-512";
  const AttentionRows plain = plain_attention_rows(), wide = wide_attention_rows();
  for (const auto& [seen, tokens] : {std::array<int64_t, 2>{1, 1}, {5, 40}, {40, 40}, {131, 133}}) {
    const AttentionRow row{seen, tokens, 0.37F};
    std::vector<float> a = drawn(tokens, 1, 3), b = a;
    EXPECT_EQ(plain.softmax(row, a.data()), wide.softmax(row, b.data()));
    EXPECT_EQ(a, b);
    std::vector<float> c = drawn(tokens, 2, 3), d = c, dc = drawn(tokens, 3, 3), dd = dc;
    plain.backward(row, 4.F, 0.3F, c.data(), dc.data());
    wide.backward(row, 4.F, 0.3F, d.data(), dd.data());
    EXPECT_EQ(c, d);
    EXPECT_EQ(dc, dd);
  }
}

TEST(WideMap, OfFloatsHasTheBitsOfOneAtATime) {
  if (!has_wide_vectors(instruction_set())) GTEST_SKIP() << "needs AVX-512";
  const std::vector<float> x = drawn(77, 4, 3), y = drawn(77, 5, 3);
  const auto f = [](float a, float b) { return vec::exp(a) / (1 + vec::tanh(b)) - a * b; };
  std::vector<float> out(77);
  wide_map(std::array<const float*, 2>{x.data(), y.data()}, out.data(), 77, f);
  for (size_t i = 0; i < 77; ++i) EXPECT_EQ(out[i], f(x[i], y[i])) << i;
}

}  // namespace
}  // namespace cafetiere
