// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string unit(int64_t streams, int64_t units, const std::vector<int64_t>& gates) {
  return input("c", {1, streams, units}) + input("gates", gates) + input("label", {1, streams}) +
         layer("LSTMUnit", "bottom: 'c' bottom: 'gates' bottom: 'label' top: 'c2' top: 'h'");
}

TEST(LSTMUnit, Gradients) {
  check_layer({.layers = unit(3, 4, {1, 3, 16}), .batches = {}, .labels = 2});
  check_layer({.layers = unit(40, 9, {1, 40, 36}), .batches = {}, .labels = 3});
}

TEST(LSTMUnit, TheOrderOfItsGates) {
  const auto device = make_ref_device();
  Figures y =
      evaluate(unit(1, 1, {1, 1, 4}), {{"c", {0.5F}}, {"gates", {1, -1, 2, -0.5F}}, {"label", {1}}},
               caffe::TEST, *device);
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const double c = sigmoid(-1) * 0.5 + sigmoid(1) * std::tanh(-0.5);
  EXPECT_NEAR(y["c2"][0], c, 1e-6);
  EXPECT_NEAR(y["h"][0], sigmoid(2) * std::tanh(c), 1e-6);
}

TEST(LSTMUnit, Refusals) {
  EXPECT_THAT(refusal(unit(3, 4, {1, 3, 15})),
              AllOf(HasSubstr("net:4: layer 'L'"), HasSubstr("the gates must be 1 3 16 (48)")));
  EXPECT_THAT(refusal(input("c", {3, 4}) + input("g", {1, 3, 16}) + input("t", {1, 3}) +
                      layer("LSTMUnit", "bottom: 'c' bottom: 'g' bottom: 't' top: 'd' top: 'h'")),
              HasSubstr("(1, streams, units)"));
}

}  // namespace
}  // namespace cafetiere
