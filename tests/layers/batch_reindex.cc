// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string reindex(const std::vector<int64_t>& rows, const std::vector<int64_t>& indices) {
  return input("x", rows) + input("label", indices) +
         layer("BatchReindex", "bottom: 'x' bottom: 'label' top: 'y'");
}

TEST(BatchReindex, Gradients) {
  check_layer({.layers = reindex({5, 3, 2}, {7}), .labels = 5});
  check_layer({.layers = reindex({5}, {3}), .labels = 5});
}

TEST(BatchReindex, Values) {
  const Figures inputs = {{"x", {1, 2, 3, 4, 5, 6}}, {"label", {2, 0, 2, 0}}};
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    Figures figures = evaluate(reindex({3, 2}, {4}), inputs, caffe::TEST, *device);
    EXPECT_THAT(figures["y"], ElementsAre(5, 6, 1, 2, 5, 6, 1, 2));
  }
}

TEST(BatchReindex, Refusals) {
  EXPECT_THAT(refusal(reindex({3, 2}, {4, 1})), HasSubstr("must have 1 axis"));
}

}  // namespace
}  // namespace cafetiere
