// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string attention(const std::vector<int64_t>& dims, const std::string& fields) {
  return input("x", dims) +
         layer("Attention", "bottom: 'x' top: 'y'", "attention_param { " + fields + " }");
}

TEST(Attention, Gradients) {
  check_layer({.layers = attention({2, 5, 6}, "num_heads: 2"), .batches = {3}});
  check_layer({.layers = attention({2, 7, 4}, "causal: true"), .batches = {3}});
  check_layer({.layers = attention({1, 4, 6}, "num_heads: 3 bias_term: false"), .batches = {3}});
  check_layer({.layers = attention({3, 1, 4}, "num_heads: 4"), .batches = {33}});
}

// More tokens than a tile has, and a last tile that is short.
TEST(Attention, ManyTokens) {
  check_layer({.layers = attention({1, 133, 8}, "num_heads: 2"), .batches = {}});
  check_layer({.layers = attention({1, 130, 4}, "causal: true"), .batches = {}});
}

// More heads than blocks.
TEST(Attention, ManyHeads) {
  check_layer({.layers = attention({9, 3, 16}, "num_heads: 8"), .batches = {}, .numeric = false});
}

/// By the definition; weights are the harness's 0.5 with a bias of 0.5, so that every query, key and
/// value of a token is (sum of its features + 1) / 2, and so is every output of its mixture.
std::vector<double> expected(const std::vector<float>& x, size_t tokens, size_t features,
                             size_t heads, bool causal) {
  const double width = double(features / heads);
  std::vector<double> value, y;
  for (size_t t = 0; t < tokens; ++t) {
    double sum = 1;
    for (size_t k = 0; k < features; ++k) sum += x[t * features + k];
    value.push_back(sum / 2);
  }
  for (size_t t = 0; t < tokens; ++t) {
    double weights = 0, mixed = 0;
    for (size_t j = 0; j < (causal ? t + 1 : tokens); ++j) {
      const double w = std::exp(width * value[t] * value[j] / std::sqrt(width));
      weights += w;
      mixed += w * value[j];
    }
    for (size_t k = 0; k < features; ++k) y.push_back((double(features) * mixed / weights + 1) / 2);
  }
  return y;
}

TEST(Attention, MeetsItsDefinition) {
  const std::vector<float> x = {0.1F, -0.4F, 0.3F, 0.8F,  -0.6F, 0.2F,
                                0.5F, -0.9F, 0.7F, -0.3F, 0.4F,  0.6F};
  for (const bool causal : {false, true}) {
    const std::string fields = causal ? "num_heads: 2 causal: true" : "num_heads: 2";
    const std::vector<double> y = expected(x, 3, 4, 2, causal);
    for (const auto& device : {make_ref_device(), make_cpu_device()}) {
      const Figures f = evaluate(attention({1, 3, 4}, fields), {{"x", x}}, caffe::TEST, *device);
      expect_close(f.at("y"), {y.begin(), y.end()}, 1e-5, "y");
    }
  }
}

// Scores beyond what an exponential can hold.
TEST(Attention, LargeScores) {
  const auto device = make_cpu_device();
  const Figures f =
      evaluate(attention({1, 2, 2}, ""), {{"x", {300, 300, 200, 200}}}, caffe::TEST, *device);
  for (float v : f.at("y")) EXPECT_FLOAT_EQ(v, 301);
}

TEST(Attention, Refusals) {
  EXPECT_THAT(refusal(attention({2, 3, 6}, "num_heads: 4")),
              AllOf(HasSubstr("net:2: layer 'L'"), HasSubstr("num_heads 4 must divide")));
  EXPECT_THAT(refusal(attention({2, 6}, "")), HasSubstr("(batch, tokens, features)"));
}

}  // namespace
}  // namespace cafetiere
