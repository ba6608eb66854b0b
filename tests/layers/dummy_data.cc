// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string dummy(const std::string& fields, const std::string& tops = "top: 'a' top: 'b'") {
  return layer("DummyData", tops, "dummy_data_param { " + fields + " }");
}

TEST(DummyData, Fills) {
  const auto cpu = make_cpu_device();
  Figures figures = evaluate(dummy("shape { dim: 2 dim: 2 } shape { dim: 3 } "
                                   "data_filler { type: 'constant' value: 7 } "
                                   "data_filler { type: 'uniform' min: 1 max: 2 }"),
                             {}, caffe::TRAIN, *cpu);
  EXPECT_THAT(figures["a"], ::testing::ElementsAre(7, 7, 7, 7));
  EXPECT_THAT(figures["b"], ::testing::Each(AllOf(::testing::Ge(1), ::testing::Le(2))));
  Figures legacy =
      evaluate(dummy("num: 2 channels: 1 height: 1 width: 3", "top: 'a'"), {}, caffe::TRAIN, *cpu);
  EXPECT_THAT(legacy["a"], ::testing::ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST(DummyData, TheSeedAndTheStepDecide) {
  const auto cpu = make_cpu_device();
  const auto values = [&](const RunContext& run) {
    return evaluate(dummy("shape { dim: 5 } data_filler { type: 'gaussian' }", "top: 'a'"), {},
                    caffe::TRAIN, *cpu, run)["a"];
  };
  EXPECT_EQ(values({.seed = 3}), values({.seed = 3}));
  EXPECT_NE(values({.seed = 3}), values({.seed = 4}));
  EXPECT_NE(values({.seed = 3}), values({.seed = 3, .sub_step = 1}));
}

TEST(DummyData, LayersAndShardsDrawApart) {
  const auto cpu = make_cpu_device();
  const std::string random =
      "dummy_data_param { shape { dim: 5 } data_filler { type: 'gaussian' } }";
  const std::string net = layer("DummyData", "name: 'one' top: 'a' top: 'b'", random) +
                          layer("DummyData", "name: 'two' top: 'c'", random);
  Figures first = evaluate(net, {}, caffe::TRAIN, *cpu, {.seed = 3});
  Figures second = evaluate(net, {}, caffe::TRAIN, *cpu, {.seed = 3, .shard = 1});
  EXPECT_NE(first["a"], first["b"]);
  EXPECT_NE(first["a"], first["c"]);
  EXPECT_NE(first["a"], second["a"]);
}

TEST(DummyData, Refusals) {
  EXPECT_THAT(refusal(dummy("")), AllOf(HasSubstr("net:1: layer 'L'"), HasSubstr("one shape")));
  EXPECT_THAT(refusal(dummy("shape { dim: 2 } num: 2")), HasSubstr("not both"));
  EXPECT_THAT(refusal(dummy("shape { dim: 2 } data_filler {} data_filler {} data_filler {}")),
              HasSubstr("one for each top"));
  auto net =
      TestNet::build(dummy("shape { dim: 2 } data_filler { type: 'gausian' }"), caffe::TRAIN);
  ASSERT_TRUE(net.ok());
  const auto cpu = make_cpu_device();
  EXPECT_THAT((*net)->plan(*cpu, 0).status().message(), HasSubstr("gausian"));
}

}  // namespace
}  // namespace cafetiere
