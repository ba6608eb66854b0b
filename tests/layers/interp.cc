// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string interp(const std::vector<int64_t>& dims, const std::string& fields) {
  return input("x", dims) +
         layer("Interp", "bottom: 'x' top: 'y'", "interp_param { " + fields + " }");
}

TEST(Interp, Gradients) {
  for (const std::string mode : {"", "align_corners: false", "mode: NEAREST"}) {
    check_layer({interp({2, 3, 4, 5}, mode + " height: 7 width: 9")});
    check_layer({interp({2, 3, 4, 5}, mode + " height: 2 width: 3")});
    check_layer({interp({2, 3, 4, 5}, mode + " zoom_factor: 2")});
    check_layer({interp({2, 3, 4, 5}, mode + " height: 1 width: 1")});
  }
  check_layer({interp({2, 3, 1, 1}, "height: 4 width: 3")});
  check_layer({interp({2, 4, 5}, "height: 3 width: 4")});
}

// The figures are those of the usual resizing functions.
TEST(Interp, Values) {
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    const auto values = [&](const std::string& fields) {
      return evaluate(interp({1, 1, 1, 3}, fields), {{"x", {0, 4, 8}}}, caffe::TEST, *device)["y"];
    };
    EXPECT_THAT(values("height: 1 width: 5"), ElementsAre(0, 2, 4, 6, 8));
    EXPECT_THAT(values("zoom_factor: 2"), ElementsAre(0, 2, 4, 6, 8));
    EXPECT_THAT(values("height: 1 width: 6 align_corners: false"), ElementsAre(0, 1, 3, 5, 7, 8));
    EXPECT_THAT(values("height: 1 width: 6 mode: NEAREST"), ElementsAre(0, 0, 4, 4, 8, 8));
    EXPECT_THAT(values("height: 1 width: 2 mode: NEAREST"), ElementsAre(0, 4));
    EXPECT_THAT(values("height: 1 width: 1"), ElementsAre(0));
  }
}

TEST(Interp, ZoomsByTheRuleOfItsMode) {
  const auto shape = [](const std::string& fields) {
    auto net = TestNet::build(interp({1, 1, 4, 5}, fields), caffe::TEST);
    return net.ok() ? (*net)->graph().infer(0).value().back() : Shape{};
  };
  EXPECT_EQ(shape("zoom_factor: 2"), (Shape{1, 1, 7, 9}));
  EXPECT_EQ(shape("zoom_factor: 2 align_corners: false"), (Shape{1, 1, 8, 10}));
  EXPECT_EQ(shape("zoom_factor: 2 mode: NEAREST"), (Shape{1, 1, 8, 10}));
  EXPECT_EQ(shape("zoom_factor: 0.5 mode: NEAREST"), (Shape{1, 1, 2, 2}));
}

std::string like(const std::vector<int64_t>& dims, const std::vector<int64_t>& label,
                 const std::string& fields) {
  return input("x", dims) + input("label", label) +
         layer("Interp", "bottom: 'x' bottom: 'label' top: 'y'", "interp_param { " + fields + " }");
}

// DeepLab's and PSPNet's.
TEST(Interp, OfForks) {
  check_layer({interp({2, 3, 9, 5}, "shrink_factor: 2")});
  check_layer({interp({2, 3, 9, 5}, "shrink_factor: 2 zoom_factor: 3")});
  check_layer({interp({2, 3, 6, 7}, "zoom_factor: 2 pad_beg: -1 pad_end: -2")});
  check_layer({interp({2, 3, 6, 7}, "height: 9 width: 4 pad_beg: -2")});
  check_layer({.layers = like({2, 3, 4, 5}, {2, 1, 6, 7}, "use_blob_size: true"), .labels = 2});
  const auto shape = [](const std::string& net) {
    auto built = TestNet::build(net, caffe::TEST);
    return built.ok() ? (*built)->graph().infer(0).value().back() : Shape{};
  };
  EXPECT_EQ(shape(interp({1, 1, 9, 6}, "shrink_factor: 2")), (Shape{1, 1, 5, 3}));
  EXPECT_EQ(shape(interp({1, 1, 9, 6}, "shrink_factor: 2 zoom_factor: 3")), (Shape{1, 1, 13, 7}));
  EXPECT_EQ(shape(interp({1, 1, 9, 6}, "zoom_factor: 2 pad_beg: -1")), (Shape{1, 1, 15, 9}));
  EXPECT_EQ(shape(like({1, 1, 4, 5}, {1, 3, 6, 7}, "")), (Shape{1, 1, 6, 7}));
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    const std::string cut = interp({1, 1, 1, 5}, "height: 1 width: 5 pad_end: -0 pad_beg: 0");
    EXPECT_THAT(evaluate(cut, {{"x", {1, 2, 3, 4, 5}}}, caffe::TEST, *device)["y"],
                ElementsAre(1, 2, 3, 4, 5));
    const std::string inner = interp({1, 1, 3, 5}, "height: 1 width: 5 pad_beg: -1 pad_end: -1");
    EXPECT_THAT(evaluate(inner, {{"x", {0, 0, 0, 0, 0, 9, 2, 4, 6, 9, 0, 0, 0, 0, 0}}}, caffe::TEST,
                         *device)["y"],
                ElementsAre(2, 3, 4, 5, 6));
    const std::string third = interp({1, 1, 1, 5}, "shrink_factor: 2");
    EXPECT_THAT(evaluate(third, {{"x", {1, 2, 3, 4, 5}}}, caffe::TEST, *device)["y"],
                ElementsAre(1, 3, 5));
  }
  EXPECT_THAT(refusal(interp({1, 1, 4, 5}, "zoom_factor: 2 pad_beg: 1")),
              HasSubstr("0 or negative"));
  EXPECT_THAT(refusal(interp({1, 1, 4, 5}, "zoom_factor: 2 pad_beg: -4")), HasSubstr("nothing"));
  EXPECT_THAT(refusal(interp({1, 1, 4, 5}, "use_blob_size: true")), HasSubstr("second bottom"));
}

TEST(Interp, Refusals) {
  const char* kSizes = "give height and width, or zoom_factor";
  EXPECT_THAT(refusal(interp({1, 1, 4, 5}, "")), HasSubstr(kSizes));
  EXPECT_THAT(refusal(interp({1, 1, 4, 5}, "height: 4")), HasSubstr(kSizes));
  EXPECT_THAT(refusal(interp({1, 1, 4, 5}, "height: 4 zoom_factor: 2")), HasSubstr(kSizes));
  EXPECT_THAT(refusal(interp({1, 1, 4, 5}, "height: 4 width: 4 zoom_factor: 2")),
              HasSubstr(kSizes));
  EXPECT_THAT(refusal(interp({1, 1, 4, 5}, "zoom_factor: 0.1 mode: NEAREST")), HasSubstr("empty"));
  EXPECT_THAT(refusal(interp({4, 5}, "height: 2 width: 2")), HasSubstr("at least 3 axes"));
}

}  // namespace
}  // namespace cafetiere
