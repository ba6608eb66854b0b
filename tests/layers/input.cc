// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Input, OneShapeForAllTopsOrOneEach) {
  const auto shapes = [](const std::string& fields) {
    auto net = TestNet::build(layer("Input", "top: 'a' top: 'b'", fields), caffe::TRAIN);
    EXPECT_TRUE(net.ok()) << net.status().message();
    return *(*net)->graph().infer(0);
  };
  EXPECT_THAT(shapes("input_param { shape { dim: 2 dim: 3 } }"),
              ::testing::ElementsAre(Shape{2, 3}, Shape{2, 3}));
  EXPECT_THAT(shapes("input_param { shape { dim: 2 dim: 3 } shape { dim: 2 } }"),
              ::testing::ElementsAre(Shape{2, 3}, Shape{2}));
}

TEST(Input, TakesTheBatchOfThePlan) {
  auto net = TestNet::build(input("x", {2, 3}), caffe::TRAIN);
  ASSERT_TRUE(net.ok());
  EXPECT_THAT(*(*net)->graph().infer(7), ::testing::ElementsAre(Shape{7, 3}));
}

TEST(Input, Refusals) {
  EXPECT_THAT(refusal(layer("Input", "top: 'x'")),
              AllOf(HasSubstr("net:1: layer 'L'"), HasSubstr("input_param { shape { dim: .. } }")));
  EXPECT_THAT(refusal(layer("Input", "top: 'a' top: 'b' top: 'c'",
                            "input_param { shape { dim: 2 } shape { dim: 2 } }")),
              HasSubstr("one for each top"));
  EXPECT_THAT(refusal(input("x", {2, -1})), HasSubstr("a dimension is negative: 2 -1"));
  EXPECT_THAT(refusal(input("x", {1 << 20, 1 << 20})), HasSubstr("more than 2^31 - 1"));
  // Products beyond 64 bits, one of which comes out as 0.
  const int64_t k32 = int64_t{1} << 32;
  EXPECT_THAT(refusal(input("x", {k32, k32, 5})), HasSubstr("more than 2^31 - 1"));
  EXPECT_THAT(refusal(input("x", {0, k32, k32, 5})), HasSubstr("more than 2^31 - 1"));
}

}  // namespace
}  // namespace cafetiere
