// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string lrn(const std::string& fields, const std::vector<int64_t>& dims = {2, 6, 4, 3}) {
  return input("x", dims) + layer("LRN", "bottom: 'x' top: 'y'", "lrn_param { " + fields + " }");
}

TEST(Lrn, AcrossChannels) {
  check_layer({lrn("")});
  check_layer({lrn("local_size: 3 alpha: 0.7 beta: 0.75 k: 2")});
  check_layer({lrn("local_size: 5 alpha: 0.3 beta: 0.5")});
  check_layer({lrn("local_size: 15 alpha: 2 beta: 1.1 k: 0.5")});
}

TEST(Lrn, WithinAChannel) {
  check_layer({lrn("norm_region: WITHIN_CHANNEL local_size: 3 alpha: 0.7")});
  check_layer({lrn("norm_region: WITHIN_CHANNEL local_size: 5 alpha: 2 beta: 0.5")});
}

TEST(Lrn, AfterAConvolution) {
  for (const char* region : {"ACROSS_CHANNELS", "WITHIN_CHANNEL"}) {
    check_layer(
        {input("x", {2, 2, 4, 4}) +
         layer("Convolution", "name: 'conv' bottom: 'x' top: 'c'",
               "convolution_param { num_output: 5 kernel_size: 1 }") +
         layer("LRN", "bottom: 'c' top: 'y'",
               std::string("lrn_param { local_size: 3 alpha: 0.5 norm_region: ") + region + " }")});
  }
}

// Behind a wide convolution the channels lie side by side.
TEST(Lrn, ChannelsSideBySide) {
  for (const int64_t size : {3, 5, 33}) {
    check_layer(
        {.layers = input("x", {2, 8, 5, 4}) +
                   layer("Convolution", "name: 'conv' bottom: 'x' top: 'c'",
                         "convolution_param { num_output: 24 kernel_size: 1 }") +
                   layer("LRN", "bottom: 'c' top: 'y'",
                         "lrn_param { alpha: 0.5 local_size: " + std::to_string(size) + " }"),
         .batches = {1, 9},
         .numeric = false});
  }
}

TEST(Lrn, Refusals) {
  EXPECT_THAT(refusal(lrn("local_size: 4")),
              AllOf(HasSubstr("net:2: layer 'L'"), HasSubstr("local_size must be odd")));
  EXPECT_THAT(refusal(lrn("", {2, 6})), HasSubstr("4 axes"));
}

}  // namespace
}  // namespace cafetiere
