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

TEST(EuclideanLoss, Refusals) {
  EXPECT_THAT(refusal(euclidean({3, 5}, {3, 4})),
              AllOf(HasSubstr("net:3: layer 'L'"), HasSubstr("3 5 (15) and 3 4 (12)")));
}

}  // namespace
}  // namespace cafetiere
