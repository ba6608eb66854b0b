// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string cos_data(const std::string& fields, const std::string& tops = "top: 'data'") {
  return layer("CoSData", tops, "cos_data_param { " + fields + " }");
}

TEST(CoSData, Shapes) {
  auto net =
      TestNet::build(cos_data("batch_size: 4 "
                              "top { name: 'image' type: RAW_IMAGE channels: 3 height: 6 width: 5 "
                              "      transform_param { crop_size: 2 } } "
                              "top { name: 'words' type: INT_ARRAY channels: 7 sample_num_axes: 1 "
                              "      transpose: true } "
                              "top { name: 'label' type: STRING sample_num_axes: 0 }",
                              "top: 'image' top: 'words' top: 'label'"),
                     caffe::TRAIN);
  ASSERT_TRUE(net.ok()) << net.status().message();
  EXPECT_THAT(*(*net)->graph().infer(0),
              ::testing::ElementsAre(Shape{4, 3, 2, 2}, Shape{7, 4}, Shape{4}));
  EXPECT_THAT(*(*net)->graph().infer(3),
              ::testing::ElementsAre(Shape{3, 3, 2, 2}, Shape{7, 3}, Shape{3}));
}

TEST(CoSData, Refusals) {
  EXPECT_THAT(refusal(cos_data("top { name: 'x' channels: 1 sample_num_axes: 1 }")),
              AllOf(HasSubstr("net:1: layer 'L'"), HasSubstr("batch_size")));
  EXPECT_THAT(refusal(cos_data("batch_size: 4")), HasSubstr("1 tops, but 0 top blocks"));
  EXPECT_THAT(refusal(cos_data("batch_size: 4 top { name: 'x' channels: 2 sample_num_axes: 2 }")),
              AllOf(HasSubstr("top 'x'"), HasSubstr("height above 0")));
  EXPECT_THAT(refusal(cos_data("batch_size: 4 top { name: 'x' channels: 1 height: 1 "
                               "sample_num_axes: 2 transpose: true }")),
              HasSubstr("transpose needs sample_num_axes: 1"));
}

}  // namespace
}  // namespace cafetiere
