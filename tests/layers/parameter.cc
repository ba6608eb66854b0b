// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string parameter(const std::string& shape, const std::string& wires = "top: 'p'") {
  return layer("Parameter", wires, "parameter_param { shape { " + shape + " } }");
}

TEST(Parameter, IsLearned) {
  check_layer({.layers = parameter("dim: 2 dim: 3"), .batches = {}});
  check_layer({parameter("dim: 3") + input("x", {2, 3, 2}) +
               layer("Scale", "name: 'scale' bottom: 'x' bottom: 'p' top: 'y'")});
}

TEST(Parameter, SharedByName) {
  check_layer({.layers = parameter("dim: 4", "top: 'p' param { name: 'w' }") +
                         parameter("dim: 4", "name: 'again' top: 'q' param { name: 'w' }") +
                         layer("Eltwise", "name: 'sum' bottom: 'p' bottom: 'q' top: 'y'",
                               "eltwise_param { operation: PROD }"),
               .batches = {}});
}

TEST(Parameter, StartsAtZero) {
  auto net = TestNet::build(parameter("dim: 2 dim: 3"), caffe::TRAIN);
  ASSERT_TRUE(net.ok());
  const Param& blob = (*net)->graph().params()[0];
  EXPECT_EQ(blob.shape, (Shape{2, 3}));
  EXPECT_EQ(blob.filler.type(), "constant");
  EXPECT_EQ(blob.filler.value(), 0);
}

TEST(Parameter, Refusals) {
  EXPECT_THAT(refusal(parameter("dim: -2")),
              AllOf(HasSubstr("net:1: layer 'L'"), HasSubstr("a dimension is negative")));
}

}  // namespace
}  // namespace cafetiere
