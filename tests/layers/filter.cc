#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Filter, IsRefusedWithAWayOut) {
  EXPECT_THAT(refusal(input("x", {4, 3}) + input("s", {4}) +
                      layer("Filter", "bottom: 'x' bottom: 's' top: 'y'")),
              AllOf(HasSubstr("net:3: layer 'L'"), HasSubstr("ignore_label")));
}

}  // namespace
}  // namespace cafetiere
