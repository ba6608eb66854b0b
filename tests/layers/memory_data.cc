// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string memory_data(const std::string& fields, const std::string& others = "") {
  return layer("MemoryData", "top: 'data' top: 'label'",
               "memory_data_param { " + fields + " } " + others);
}

TEST(MemoryData, Shapes) {
  const auto shapes = [](const std::string& others) {
    auto net = TestNet::build(memory_data("batch_size: 4 channels: 3 height: 6 width: 5", others),
                              caffe::TRAIN);
    EXPECT_TRUE(net.ok()) << net.status().message();
    return *(*net)->graph().infer(0);
  };
  EXPECT_THAT(shapes(""), ::testing::ElementsAre(Shape{4, 3, 6, 5}, Shape{4}));
  EXPECT_THAT(shapes("transform_param { crop_size: 2 }"),
              ::testing::ElementsAre(Shape{4, 3, 2, 2}, Shape{4}));
}

TEST(MemoryData, Refusals) {
  EXPECT_THAT(refusal(memory_data("batch_size: 4 channels: 3 height: 6")),
              AllOf(HasSubstr("net:1: layer 'L'"), HasSubstr("all above 0")));
  EXPECT_THAT(refusal(layer("MemoryData", "")), HasSubstr("0 top(s) but takes 1 to 2"));
  EXPECT_THAT(refusal(layer("MemoryData", "top: 'a' top: 'b' top: 'c'")),
              HasSubstr("3 top(s) but takes 1 to 2"));
}

}  // namespace
}  // namespace cafetiere
