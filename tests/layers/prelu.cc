// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string prelu(const std::vector<int64_t>& dims, const std::string& fields = "") {
  return input("x", dims) +
         layer("PReLU", "bottom: 'x' top: 'y'", "prelu_param { " + fields + " }");
}

TEST(PReLU, SlopesOfChannels) {
  check_layer({prelu({2, 3, 4, 5})});
  check_layer({prelu({2, 7})});
}

TEST(PReLU, OneSlope) {
  check_layer({prelu({2, 3, 4, 5}, "channel_shared: true")});
  check_layer({prelu({2, 7}, "channel_shared: true")});
}

TEST(PReLU, InPlaceBetweenConvolutions) {
  const std::string fields = "convolution_param { num_output: 5 kernel_size: 2 }";
  for (const std::string shared : {"false", "true"}) {
    check_layer({.layers = input("x", {2, 2, 4, 4}) +
                           layer("Convolution", "name: 'a' bottom: 'x' top: 'y'", fields) +
                           layer("PReLU", "bottom: 'y' top: 'y'",
                                 "prelu_param { channel_shared: " + shared + " }") +
                           layer("Convolution", "name: 'b' bottom: 'y' top: 'z'", fields),
                 .numeric = false});
  }
}

TEST(PReLU, Values) {
  const Figures in{{"x", {-2, 2, 0, -1}}};
  const auto ref = make_ref_device();
  EXPECT_THAT(evaluate(prelu({2, 2}), in, caffe::TRAIN, *ref)["y"], ElementsAre(-1, 2, 0, -0.5))
      << "parameters are 0.5 here";
}

TEST(PReLU, StartsAtAQuarter) {
  auto net = TestNet::build(prelu({2, 3}), caffe::TRAIN);
  ASSERT_TRUE(net.ok());
  const Param& slopes = (*net)->graph().params()[0];
  EXPECT_EQ(slopes.shape, Shape{3});
  EXPECT_EQ(slopes.filler.value(), 0.25F);
}

TEST(PReLU, Refusals) {
  EXPECT_THAT(refusal(prelu({4})),
              AllOf(HasSubstr("net:2: layer 'L'"), HasSubstr("at least 2 axes, not 4")));
}

}  // namespace
}  // namespace cafetiere
