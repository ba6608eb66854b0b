// SPDX-License-Identifier: Apache-2.0
// Whole nets through Graph::build: old forms of the schema, and what a faulty net is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<std::string> types_of(const std::string& net) {
  auto built = TestNet::build(net, caffe::TRAIN);
  EXPECT_TRUE(built.ok()) << built.status().message();
  std::vector<std::string> types;
  if (!built.ok()) return types;
  for (const Node& node : (*built)->graph().nodes()) types.emplace_back(node.type->name);
  return types;
}

TEST(Nets, OfTheV1FormAreBuilt) {
  const char* net =
      "input: 'x' input_dim: 2 input_dim: 3 input_dim: 5 input_dim: 5\n"
      "layers { name: 'c' type: CONVOLUTION bottom: 'x' top: 'c' blobs_lr: 1 blobs_lr: 2\n"
      "  convolution_param { num_output: 4 kernel_size: 3 } }\n"
      "layers { name: 'r' type: RELU bottom: 'c' top: 'c' }\n";
  EXPECT_THAT(types_of(net), ::testing::ElementsAre("Input", "Convolution", "ReLU"));
}

TEST(Nets, OfTheV0FormAreBuilt) {
  const char* net =
      "input: 'x' input_dim: 2 input_dim: 3 input_dim: 5 input_dim: 5\n"
      "layers { layer { name: 'ip' type: 'innerproduct' num_output: 4 } bottom: 'x' top: 'ip' }\n"
      "layers { layer { name: 'r' type: 'relu' } bottom: 'ip' top: 'ip' }\n";
  EXPECT_THAT(types_of(net), ::testing::ElementsAre("Input", "InnerProduct", "ReLU"));
}

TEST(Nets, FaultsOfOldFormsPointAtTheirLine) {
  const std::string start = "input: 'x' input_dim: 2 input_dim: 3 input_dim: 5 input_dim: 5\n";
  EXPECT_THAT(refusal(start + "layers { name: 'c' type: CONVOLUTION bottom: 'x' top: 'c'\n"
                              "  convolution_param { kernel_size: 3 } }"),
              AllOf(HasSubstr("net:2: layer 'c'"), HasSubstr("num_output")));
  EXPECT_THAT(refusal(start + "layers { layer { name: 'ip' type: 'innerproduct' } bottom: 'x'\n"
                              "  top: 'ip' }"),
              AllOf(HasSubstr("net:2: layer 'ip'"), HasSubstr("num_output")));
}

TEST(Nets, UnknownTypes) {
  EXPECT_THAT(
      refusal(input("x", {2}) + layer("Relu", "bottom: 'x' top: 'y'")),
      AllOf(HasSubstr("net:2: layer 'L'"), HasSubstr("Unknown layer type: Relu"),
            HasSubstr("did you mean \"ReLU\""), HasSubstr("known types: AbsVal, Accuracy, ")));
}

TEST(Nets, UnknownAndRepeatedBlobs) {
  EXPECT_THAT(
      refusal(input("x", {2}) + layer("ReLU", "bottom: 'z' top: 'y'")),
      AllOf(HasSubstr("net:2: Unknown bottom blob 'z' (layer 'L'"), HasSubstr("mean \"x\"")));
  EXPECT_THAT(refusal(input("x", {2}) + input("x", {2})),
              AllOf(HasSubstr("net:2: layer 'in_x'"),
                    HasSubstr("Top blob 'x' produced by multiple sources.")));
}

TEST(Nets, WrongCounts) {
  EXPECT_THAT(refusal(input("x", {2, 3}) + layer("InnerProduct",
                                                 "bottom: 'x' top: 'y' propagate_down: true "
                                                 "propagate_down: true",
                                                 "inner_product_param { num_output: 2 }")),
              HasSubstr("propagate_down is given 2 time(s) for 1 bottom(s)"));
}

TEST(Nets, SharedParametersMustFit) {
  const auto ip = [](const std::string& name, const std::string& bottom, int outputs,
                     const std::string& param) {
    return layer(
        "InnerProduct",
        "name: '" + name + "' bottom: '" + bottom + "' top: '" + name + "' param { " + param + " }",
        "inner_product_param { num_output: " + std::to_string(outputs) + " }");
  };
  EXPECT_THAT(
      refusal(input("x", {2, 3}) + ip("a", "x", 3, "name: 'w'") + ip("b", "a", 4, "name: 'w'")),
      AllOf(HasSubstr("net:3: layer 'b'"), HasSubstr("owned by layer 'a'"), HasSubstr("3 3 (9)"),
            HasSubstr("4 3 (12)")));
  EXPECT_THAT(refusal(input("x", {2, 3}) + ip("a", "x", 3, "name: 'w' lr_mult: 2") +
                      ip("b", "a", 3, "name: 'w' lr_mult: 3")),
              HasSubstr("mismatched lr_mult"));
}

}  // namespace
}  // namespace cafetiere
