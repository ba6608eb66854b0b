// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string tile(const std::vector<int64_t>& dims, const std::string& fields) {
  return input("x", dims) + layer("Tile", "bottom: 'x' top: 'y'", "tile_param { " + fields + " }");
}

TEST(Tile, Axes) {
  check_layer({tile({2, 3, 4, 2}, "tiles: 3")});
  check_layer({tile({2, 3, 4, 2}, "axis: 2 tiles: 2")});
  check_layer({tile({2, 3, 4}, "axis: -1 tiles: 5")});
  check_layer({tile({2, 3}, "axis: 0 tiles: 2")});
  check_layer({tile({2, 1, 4}, "tiles: 1")});
}

TEST(Tile, BetweenConvolutions) {
  const std::string fields = "convolution_param { num_output: 2 kernel_size: 2 }";
  check_layer({input("x", {2, 3, 5, 4}) +
               layer("Convolution", "name: 'a' bottom: 'x' top: 'a'", fields) +
               layer("Tile", "bottom: 'a' top: 'b'", "tile_param { tiles: 3 }") +
               layer("Convolution", "name: 'c' bottom: 'b' top: 'c'", fields)});
}

TEST(Tile, Values) {
  const Figures in{{"x", {0, 1, 2, 3}}};
  const auto ref = make_ref_device();
  const auto y = [&](const std::string& fields) {
    return evaluate(tile({2, 2}, fields), in, caffe::TEST, *ref)["y"];
  };
  EXPECT_THAT(y("tiles: 2"), ElementsAre(0, 1, 0, 1, 2, 3, 2, 3));
  EXPECT_THAT(y("axis: 0 tiles: 2"), ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
}

TEST(Tile, Refusals) {
  EXPECT_THAT(refusal(tile({2, 3}, "")),
              AllOf(HasSubstr("net:2: layer 'L'"), HasSubstr("tiles must be above 0")));
  EXPECT_THAT(refusal(tile({2, 3}, "axis: 2 tiles: 2")), HasSubstr("axis 2"));
}

}  // namespace
}  // namespace cafetiere
