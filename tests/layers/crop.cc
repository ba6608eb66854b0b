// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string crop(const std::vector<int64_t>& dims, const std::vector<int64_t>& size,
                 const std::string& fields) {
  return input("x", dims) + input("size", size) +
         layer("Crop", "bottom: 'x' bottom: 'size' top: 'y'", "crop_param { " + fields + " }");
}

TEST(Crop, Gradients) {
  check_layer({crop({2, 3, 6, 5}, {2, 1, 4, 3}, "")});
  check_layer({crop({2, 3, 6, 5}, {2, 1, 4, 3}, "offset: 2")});
  check_layer({crop({2, 3, 6, 5}, {2, 2, 4, 5}, "axis: 1 offset: 1 offset: 2 offset: 0")});
  check_layer({crop({2, 3, 6, 5}, {2, 2, 4, 2}, "axis: -1 offset: 3")});
  check_layer({.layers = crop({5, 3}, {2, 2}, "axis: 0 offset: 3 offset: 1"), .batches = {}});
  check_layer({.layers = crop({5}, {2}, "axis: 0"), .batches = {}});
}

TEST(Crop, Values) {
  const Figures inputs = {{"x", {1, 2, 3, 4, 5, 6, 7, 8, 9}}};
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    Figures figures = evaluate(crop({1, 1, 3, 3}, {1, 1, 2, 2}, "offset: 1 offset: 0"), inputs,
                               caffe::TEST, *device);
    EXPECT_THAT(figures["y"], ElementsAre(4, 5, 7, 8));
  }
}

// As in Caffe, the second bottom may have further axes, which are not used.
TEST(Crop, ToASizeOfMoreAxes) {
  const Figures inputs = {{"x", {1, 2, 3, 4, 5, 6}}};
  Figures figures = evaluate(crop({2, 3}, {2, 2, 9}, "axis: 1 offset: 1"), inputs, caffe::TEST,
                             *make_cpu_device());
  EXPECT_THAT(figures["y"], ElementsAre(2, 3, 5, 6));
}

TEST(Crop, Refusals) {
  EXPECT_THAT(refusal(crop({2, 3, 6, 5}, {2, 3, 4, 4}, "offset: 2")),
              HasSubstr("axis 3: 4 elements from offset 2 lie beyond"));
  EXPECT_THAT(refusal(crop({2, 3, 6, 5}, {2, 3, 4, 4}, "offset: 1 offset: 1 offset: 1")),
              HasSubstr("offset is given 3 times for 2 cropped axes"));
  EXPECT_THAT(refusal(crop({2, 3, 6, 5}, {2, 3, 4}, "")), HasSubstr("each axis of the first"));
}

}  // namespace
}  // namespace cafetiere
