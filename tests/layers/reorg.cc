// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

std::string reorg(const std::vector<int64_t>& dims, const std::string& fields) {
  return input("x", dims) +
         layer("Reorg", "bottom: 'x' top: 'y'", "reorg_param { " + fields + " }");
}

TEST(Reorg, Gradients) {
  check_layer({reorg({3, 8, 4, 6}, "stride: 2")});
  check_layer({reorg({3, 9, 2, 4}, "stride: 3 reverse: true")});
}

/// Darknet's loop, as the facts of its formula give it: pairs of places in the two blobs.
std::vector<float> darknet(const std::vector<float>& x, int channels, int height, int width, int s,
                           bool reverse) {
  std::vector<float> y(x.size());
  const int few = channels / (s * s);
  for (int c = 0; c < channels; ++c) {
    for (int h = 0; h < height; ++h) {
      for (int w = 0; w < width; ++w) {
        const int a = w + width * (h + height * c);
        const int column = w * s + c / few % s, row = h * s + c / few / s;
        const int b = column + width * s * (row + height * s * (c % few));
        y[size_t(reverse ? b : a)] = x[size_t(reverse ? a : b)];
      }
    }
  }
  return y;
}

TEST(Reorg, HasTheOrderOfDarknet) {
  std::vector<float> x(2 * 8 * 4 * 2);
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(i);
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    for (const bool reverse : {false, true}) {
      const std::vector<float> y =
          evaluate(reorg({2, 8, 4, 2}, std::string("stride: 2 reverse: ") + (reverse ? "1" : "0")),
                   {{"x", x}}, caffe::TEST, *device)["y"];
      for (size_t n = 0; n < 2; ++n) {
        const auto image = [&](const std::vector<float>& v) {
          return std::vector<float>(v.begin() + int(n) * 64, v.begin() + int(n + 1) * 64);
        };
        EXPECT_THAT(image(y), ElementsAreArray(darknet(image(x), 8, 4, 2, 2, reverse)));
      }
    }
  }
}

TEST(Reorg, Shapes) {
  const auto shape = [](const std::string& fields) {
    auto net = TestNet::build(reorg({2, 8, 4, 6}, fields), caffe::TEST);
    return net.ok() ? (*net)->graph().infer(0).value().back() : Shape{};
  };
  EXPECT_EQ(shape("stride: 2"), (Shape{2, 32, 2, 3}));
  EXPECT_EQ(shape("stride: 2 reverse: true"), (Shape{2, 2, 8, 12}));
}

TEST(Reorg, Refusals) {
  EXPECT_THAT(refusal(reorg({1, 8, 4, 4}, "")), HasSubstr("give stride"));
  EXPECT_THAT(refusal(reorg({1, 6, 4, 4}, "stride: 2")), HasSubstr("4 divides"));
  EXPECT_THAT(refusal(reorg({1, 8, 3, 4}, "stride: 2")), HasSubstr("height and width"));
}

}  // namespace
}  // namespace cafetiere
