// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;
using ::testing::Key;

std::string tops_of_slice_to(const std::string& silenced) {
  return input("x", {2, 6}) +
         layer("Slice", "name: 'slice' bottom: 'x' top: 'a' top: 'b' top: 'c'") +
         layer("Silence", silenced);
}

TEST(Silence, TakesAwayOutputs) {
  const auto ref = make_ref_device();
  EXPECT_THAT(evaluate(tops_of_slice_to("bottom: 'a' bottom: 'c'"), {}, caffe::TRAIN, *ref),
              ElementsAre(Key("b"), Key("x diff")));
}

// What is silenced has a gradient of 0, which is what the differences say.
TEST(Silence, StopsTheGradient) {
  check_layer({tops_of_slice_to("bottom: 'a' bottom: 'c'")});
  check_layer({tops_of_slice_to("bottom: 'b'")});
}

}  // namespace
}  // namespace cafetiere
