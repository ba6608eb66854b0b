// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Split, SumsTheGradientsOfItsTops) {
  check_layer({input("x", {2, 3, 4}) + layer("Split", "bottom: 'x' top: 'a' top: 'b' top: 'c'")});
}

// Each reader of a blob works on its own, one of them in place.
TEST(Split, InsertedForABlobWithSeveralReaders) {
  check_layer({.layers = input("x", {2, 3, 4, 4}) +
                         layer("Convolution", "name: 'c' bottom: 'x' top: 'c'",
                               "convolution_param { num_output: 4 kernel_size: 2 }") +
                         layer("ReLU", "name: 'r' bottom: 'c' top: 'r'") +
                         layer("Pooling", "name: 'p' bottom: 'c' top: 'p'",
                               "pooling_param { kernel_size: 2 }") +
                         layer("InnerProduct", "name: 'i' bottom: 'c' top: 'i'",
                               "inner_product_param { num_output: 3 }"),
               .numeric = false});
}

TEST(Split, Refusals) {
  EXPECT_THAT(refusal(input("x", {2}) + layer("Split", "bottom: 'x'")),
              AllOf(HasSubstr("net:2: layer 'L'"), HasSubstr("0 top(s) but takes at least 1")));
}

}  // namespace
}  // namespace cafetiere
