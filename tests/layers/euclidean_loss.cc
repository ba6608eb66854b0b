// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string euclidean(const std::vector<int64_t>& a, const std::vector<int64_t>& b,
                      const std::string& fields = "") {
  return input("a", a) + input("b", b) +
         layer("EuclideanLoss", "bottom: 'a' bottom: 'b' top: 'y'", fields);
}

TEST(EuclideanLoss, Gradients) {
  check_layer({euclidean({3, 5}, {3, 5})});
  check_layer({euclidean({2, 6}, {2, 3, 2})});
  check_layer({euclidean({3, 5}, {3, 5}, "propagate_down: true propagate_down: false")});
}

TEST(EuclideanLoss, HalfTheMeanOfSquaredDistances) {
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    Figures figures = evaluate(euclidean({2, 2}, {2, 2}),
                               {{"a", {1, 2, 3, 4}}, {"b", {0, 2, 3, 1}}}, caffe::TRAIN, *device);
    EXPECT_FLOAT_EQ(figures["y"][0], 2.5F);
  }
}

TEST(EuclideanLoss, Weights) {
  const auto weighted = [](const std::vector<int64_t>& weights, const std::string& down) {
    return input("a", {3, 2}) + input("b", {3, 2}) + input("w", weights) +
           layer("EuclideanLoss", "bottom: 'a' bottom: 'b' bottom: 'w' top: 'y'", down);
  };
  const std::string down = "propagate_down: true propagate_down: true propagate_down: ";
  check_layer({weighted({3}, down + "false")});
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    Figures figures =
        evaluate(weighted({3}, down + "false"), {{"a", {1, 2, 3, 4, 5, 6}}, {"w", {0, 2, 0}}},
                 caffe::TRAIN, *device);
    EXPECT_FLOAT_EQ(figures["y"][0], 25.F / 3) << "divided by the rows";
  }
  EXPECT_THAT(refusal(weighted({2}, down + "false")), HasSubstr("a weight for each of 3 rows"));
}

TEST(EuclideanLoss, Refusals) {
  EXPECT_THAT(refusal(euclidean({3, 5}, {3, 4})),
              AllOf(HasSubstr("net:3: layer 'L'"), HasSubstr("3 5 (15) and 3 4 (12)")));
}

}  // namespace
}  // namespace cafetiere
