// SPDX-License-Identifier: Apache-2.0
// Python: outside Python there is nothing to run it with.
#include <gmock/gmock.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

TEST(Python, SaysWhereItRuns) {
  EXPECT_THAT(
      refusal(input("x", {2, 3}) + layer("Python", R"(bottom: "x" top: "y")",
                                         R"(python_param { module: "layers" layer: "Twice" })")),
      testing::HasSubstr("class 'Twice' of module 'layers' is Python; use the net from Python"));
}

}  // namespace
}  // namespace cafetiere
