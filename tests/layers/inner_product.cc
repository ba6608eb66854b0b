// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string inner_product(const std::vector<int64_t>& dims, const std::string& fields) {
  return input("x", dims) +
         layer("InnerProduct", "bottom: 'x' top: 'y'", "inner_product_param { " + fields + " }");
}

TEST(InnerProduct, Matrices) {
  check_layer({inner_product({3, 7}, "num_output: 4")});
  check_layer({inner_product({3, 7}, "num_output: 4 bias_term: false")});
  check_layer({inner_product({3, 7}, "num_output: 4 transpose: true")});
  check_layer({inner_product({1, 1}, "num_output: 1")});
}

TEST(InnerProduct, SharesItsWeightsWithItsBias) {
  const std::string shared = "param { name: 'q' share_mode: PERMISSIVE } ";
  check_layer(
      {input("x", {3, 1}) + layer("InnerProduct", "bottom: 'x' top: 'y'",
                                  shared + shared + "inner_product_param { num_output: 4 }")});
}

TEST(InnerProduct, ManyAxes) {
  check_layer({inner_product({2, 3, 2, 4}, "num_output: 5")});
  check_layer({inner_product({2, 3, 8}, "num_output: 5 axis: 2")});
  check_layer({inner_product({2, 3, 8}, "num_output: 5 axis: -1 transpose: true")});
  check_layer({.layers = inner_product({6}, "num_output: 3 axis: 0"), .batches = {}});
}

/// As many rows in each of the batch as sequences have: they are pixels.
TEST(InnerProduct, RowsOfSequences) {
  check_layer({inner_product({2, 16, 8}, "num_output: 8 axis: 2")});
  check_layer({.layers = inner_product({3, 5, 4, 40}, "num_output: 48 axis: 3"),
               .batches = {1, 9},
               .numeric = false});
  check_layer({.layers = inner_product({3, 400, 16}, "num_output: 72 axis: 2 bias_term: false"),
               .batches = {1, 9},
               .numeric = false});
}

TEST(InnerProduct, BeyondOneBlock) {
  check_layer({.layers = inner_product({3, 100}, "num_output: 130"),
               .batches = {32, 67},
               .numeric = false});
  check_layer(
      {.layers = inner_product({3, 800}, "num_output: 64"), .batches = {64}, .numeric = false});
  check_layer(
      {.layers = inner_product({3, 512}, "num_output: 72"), .batches = {17, 67}, .numeric = false});
}

TEST(InnerProduct, LayersThatShareParameters) {
  const std::string fields =
      "param { name: 'w' } param { name: 'b' } "
      "inner_product_param { num_output: 5 }";
  check_layer({input("x", {3, 5}) +
               layer("InnerProduct", "name: 'one' bottom: 'x' top: 'y'", fields) +
               layer("InnerProduct", "name: 'two' bottom: 'y' top: 'z'", fields)});
}

TEST(InnerProduct, Refusals) {
  EXPECT_THAT(refusal(inner_product({3, 7}, "")),
              AllOf(HasSubstr("net:2: layer 'L'"), HasSubstr("num_output must be above 0")));
  EXPECT_THAT(refusal(inner_product({3, 7}, "num_output: 2 axis: 2")),
              AllOf(HasSubstr("axis 2"), HasSubstr("[-2, 1]")));
  EXPECT_THAT(refusal(input("x", {2, 3}) + layer("InnerProduct",
                                                 "bottom: 'x' top: 'y' param {} param {} param {}",
                                                 "inner_product_param { num_output: 2 }")),
              HasSubstr("Too many params specified: 3 param entries for 2 blobs"));
}

}  // namespace
}  // namespace cafetiere
