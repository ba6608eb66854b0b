// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

std::string seg_accuracy(const std::string& fields) {
  return input("x", {1, 3, 2, 3}) + input("label", {1, 1, 2, 3}) +
         layer("SegAccuracy",
               "bottom: 'x' bottom: 'label' top: 'y' propagate_down: false propagate_down: false",
               "seg_accuracy_param { " + fields + " }");
}

// Found: 0 0 1 / 1 2 0; labels: 0 1 1 / 1 255 0.
TEST(SegAccuracy, OfTheConfusionMatrix) {
  const Figures inputs = {{"x", {5, 5, 0, 0, 0, 5, 0, 0, 5, 5, 0, 0, 0, 0, 0, 0, 5, 0}},
                          {"label", {0, 1, 1, 1, 255, 0}}};
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    const auto values = [&](const std::string& fields) {
      return evaluate(seg_accuracy(fields), inputs, caffe::TEST, *device)["y"];
    };
    EXPECT_THAT(values("ignore_label: 255"),
                ElementsAre(FloatEq(4 / 5.F), FloatEq((1 + 2 / 3.F) / 2), FloatEq(2 / 3.F)));
    EXPECT_THAT(values("ignore_label: 1"), ElementsAre(1, 1, 1));
  }
}

TEST(SegAccuracy, Refusals) {
  EXPECT_THAT(refusal(seg_accuracy("reset: false")), HasSubstr("counts over batches"));
}

}  // namespace
}  // namespace cafetiere
