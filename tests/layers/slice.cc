// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string slice(const std::vector<int64_t>& dims, int tops, const std::string& fields) {
  std::string wires = "bottom: 'x'";
  for (int i = 0; i < tops; ++i) wires += " top: '" + std::to_string(i) + "'";
  return input("x", dims) + layer("Slice", wires, "slice_param { " + fields + " }");
}

TEST(Slice, Axes) {
  check_layer({slice({2, 6, 4, 2}, 3, "")});
  check_layer({slice({2, 6, 4, 2}, 3, "slice_point: 1 slice_point: 5")});
  check_layer({slice({2, 7}, 2, "slice_dim: 1 slice_point: 3")});
  check_layer({slice({2, 3, 4}, 4, "axis: -1")});
  check_layer({.layers = slice({6, 3}, 3, "axis: 0"), .batches = {9}});
  check_layer({slice({2, 3, 4}, 1, "")});
}

TEST(Slice, BetweenConvolutions) {
  const auto conv = [](const std::string& from, const std::string& to) {
    return layer("Convolution", "name: '" + to + "' bottom: '" + from + "' top: '" + to + "'",
                 "convolution_param { num_output: 4 kernel_size: 2 }");
  };
  const std::string net =
      input("x", {2, 3, 5, 4}) + conv("x", "a") +
      layer("Slice", "bottom: 'a' top: 'b' top: 'c'", "slice_param { slice_point: 1 }") +
      conv("b", "d");
  check_layer({net});
  check_layer({net + layer("Silence", "name: 'silence' bottom: 'c'")});
}

TEST(Slice, Values) {
  const Figures in{{"x", {0, 1, 2, 3, 4, 5}}};
  const auto ref = make_ref_device();
  const Figures tops = evaluate(slice({2, 3}, 2, "slice_point: 2"), in, caffe::TEST, *ref);
  EXPECT_THAT(tops.at("0"), ::testing::ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(tops.at("1"), ::testing::ElementsAre(2, 5));
}

TEST(Slice, Refusals) {
  EXPECT_THAT(refusal(slice({2, 5}, 2, "")),
              AllOf(HasSubstr("net:2: layer 'L'"), HasSubstr("axis of 5"),
                    HasSubstr("2 equal tops; give slice_point")));
  EXPECT_THAT(refusal(slice({2, 5}, 3, "slice_point: 2")),
              HasSubstr("3 tops need 2 slice_point(s), not 1"));
  for (const std::string points : {"slice_point: 3 slice_point: 3", "slice_point: 0 slice_point: 1",
                                   "slice_point: 2 slice_point: 5"}) {
    EXPECT_THAT(refusal(slice({2, 5}, 3, points)), HasSubstr("must rise")) << points;
  }
  EXPECT_THAT(refusal(slice({2, 4}, 2, "axis: 1 slice_dim: 1")), HasSubstr("not both"));
  EXPECT_THAT(refusal(slice({2, 4}, 2, "axis: 2")), HasSubstr("axis 2"));
}

}  // namespace
}  // namespace cafetiere
