// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string spp(const std::vector<int64_t>& dims, const std::string& fields) {
  return input("x", dims) + layer("SPP", "bottom: 'x' top: 'y'", "spp_param { " + fields + " }");
}

TEST(Spp, Gradients) {
  for (const std::string pool : {"MAX", "AVE"}) {
    check_layer({spp({2, 3, 9, 8}, "pyramid_height: 3 pool: " + pool)});
    check_layer({spp({2, 3, 4, 7}, "pyramid_height: 2 pool: " + pool)});
    check_layer({spp({2, 3, 5, 4}, "pyramid_height: 1 pool: " + pool)});
  }
}

TEST(Spp, AfterAConvolution) {
  check_layer({input("x", {2, 2, 9, 9}) +
               layer("Convolution", "name: 'conv' bottom: 'x' top: 'c'",
                     "convolution_param { num_output: 3 kernel_size: 2 }") +
               layer("SPP", "bottom: 'c' top: 'y'", "spp_param { pyramid_height: 3 }")});
}

TEST(Spp, Values) {
  const Figures inputs = {{"x", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}}};
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    Figures figures =
        evaluate(spp({1, 1, 4, 4}, "pyramid_height: 2"), inputs, caffe::TEST, *device);
    EXPECT_THAT(figures["y"], ElementsAre(16, 6, 8, 14, 16));
  }
}

TEST(Spp, OneLevelKeepsItsAxes) {
  auto net = TestNet::build(spp({2, 3, 5, 4}, "pyramid_height: 1"), caffe::TEST);
  ASSERT_TRUE(net.ok()) << net.status().message();
  EXPECT_EQ((*net)->graph().infer(0).value().back(), (Shape{2, 3, 1, 1}));
}

TEST(Spp, Refusals) {
  EXPECT_THAT(refusal(spp({2, 3, 9, 8}, "")), HasSubstr("pyramid_height must be above 0"));
  EXPECT_THAT(refusal(spp({2, 3, 9, 8}, "pyramid_height: 6")),
              AllOf(HasSubstr("pyramid level 3"), HasSubstr("pad must be smaller")));
  EXPECT_THAT(refusal(spp({2, 3, 9}, "pyramid_height: 2")), HasSubstr("4 axes"));
  EXPECT_THAT(refusal(spp({2, 3, 9, 8}, "pyramid_height: 2 pool: STOCHASTIC")),
              HasSubstr("STOCHASTIC"));
}

}  // namespace
}  // namespace cafetiere
