// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string filter(const std::string& tops = "top: 'y'") {
  return layer("Filter", "bottom: 'x' bottom: 's' " + tops);
}

// What it does is tested where it runs: tests/plan/net_test.cc.
TEST(Filter, APlanRefusesItWithAWayOut) {
  auto net = TestNet::build(input("x", {4, 3}) + input("s", {4, 1}) + filter(), caffe::TEST);
  ASSERT_TRUE(net.ok()) << net.status().message();
  const auto device = make_cpu_device();
  EXPECT_THAT(
      (*net)->plan(*device, 4).status().message(),
      AllOf(HasSubstr("net:3: layer 'L'"), HasSubstr("Python package"), HasSubstr("ignore_label")));
}

TEST(Filter, Refusals) {
  EXPECT_THAT(refusal(input("x", {4, 3}) + input("s", {4, 2}) + filter()),
              AllOf(HasSubstr("net:3: layer 'L'"), HasSubstr("one value a row")));
  EXPECT_THAT(refusal(input("x", {4, 3}) + input("s", {5}) + filter()),
              HasSubstr("the selector 5 rows"));
  EXPECT_THAT(refusal(input("x", {4, 3}) + input("s", {4}) + filter("top: 'y' top: 'z'")),
              HasSubstr("2 tops for 2 bottoms"));
}

}  // namespace
}  // namespace cafetiere
