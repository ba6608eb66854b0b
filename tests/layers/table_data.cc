// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string table_data(const std::string& fields, const std::string& tops = "top: 'x'") {
  return layer("TableData", tops, "table_data_param { " + fields + " }");
}

TEST(TableData, Shapes) {
  auto net = TestNet::build(
      table_data("batch_size: 4 "
                 "top { column { name: 'age' mean: 40 scale: 0.1 missing_flag: true } "
                 "      column { name: 'colour' kind: ONE_HOT value: 'red' value: 'blue' } "
                 "      column { name: 'born' kind: DATE } column { name: 'seen' kind: TIMESTAMP } "
                 "      column { name: 'pixels' size: 9 } } "
                 "top { column { name: 'city' kind: CATEGORY value: 'Rome' } } "
                 "top { column { name: 'y' kind: CLASS value: 'no' value: 'yes' } }",
                 "top: 'x' top: 'city' top: 'label'"),
      caffe::TRAIN);
  ASSERT_TRUE(net.ok()) << net.status().message();
  EXPECT_THAT(*(*net)->graph().infer(0),
              ::testing::ElementsAre(Shape{4, 2 + 4 + 5 + 7 + 9}, Shape{4, 1}, Shape{4}));
  EXPECT_THAT(*(*net)->graph().infer(3),
              ::testing::ElementsAre(Shape{3, 27}, Shape{3, 1}, Shape{3}));
}

TEST(TableData, Refusals) {
  EXPECT_THAT(refusal(table_data("top { column { name: 'a' } }")),
              AllOf(HasSubstr("net:1: layer 'L'"), HasSubstr("batch_size")));
  EXPECT_THAT(refusal(table_data("batch_size: 4")), HasSubstr("1 tops, but 0 top blocks"));
  EXPECT_THAT(refusal(table_data("batch_size: 4 top { }")), HasSubstr("top 'x' has no column"));
}

}  // namespace
}  // namespace cafetiere
