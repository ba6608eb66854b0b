// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string exposed_rnn(int64_t steps, int64_t streams, bool fixed) {
  return input("x", {steps, streams, 2, 2}) + input("label", {steps, streams}) +
         (fixed ? input("s", {streams, 3}) : "") + input("h", {1, streams, 5}) +
         layer("RNN",
               std::string("bottom: 'x' bottom: 'label' ") + (fixed ? "bottom: 's' " : "") +
                   "bottom: 'h' top: 'y' top: 'h_last'",
               "recurrent_param { num_output: 5 expose_hidden: true }");
}

TEST(RNN, ExposedStates) {
  check_layer({.layers = exposed_rnn(4, 3, false), .batches = {}, .labels = 2});
  check_layer({.layers = exposed_rnn(2, 17, true), .batches = {}, .labels = 2});
}

// Two steps of one unit by hand, and the next run, which goes on from there.
TEST(RNN, KeepsItsState) {
  const std::string net =
      input("x", {2, 1, 1}) + input("cont", {2, 1}) +
      layer("RNN", "bottom: 'x' bottom: 'cont' top: 'y'", "recurrent_param { num_output: 1 }");
  auto built = TestNet::build(net, caffe::TEST);
  ASSERT_TRUE(built.ok()) << built.status().message();
  const std::vector<float> weights = {0.5F, 0.1F, -0.7F, 2, 0.3F};  // W_xh, b_h, W_hh, W_ho, b_o
  for (size_t i = 0; i < weights.size(); ++i) (*built)->param(i)[0] = weights[i];
  const auto device = make_cpu_device();
  auto plan = (*built)->plan(*device, 0, false);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ThreadPool pool(1);
  double h = 0;
  for (int run = 0; run < 2; ++run) {
    const std::vector<float> x = {1, -2}, cont = {1, 1};
    std::ranges::copy(x, (*plan)->inputs()[0].data);
    std::ranges::copy(cont, (*plan)->inputs()[1].data);
    EXPECT_TRUE((*plan)->run(pool, {}).ok());
    for (size_t t = 0; t < 2; ++t) {
      h = std::tanh(0.5 * x[t] + 0.1 - 0.7 * h);
      EXPECT_NEAR((*plan)->outputs()[0].data[t], std::tanh(2 * h + 0.3), 1e-6);
    }
  }
}

TEST(RNN, Blobs) {
  auto net = TestNet::build(exposed_rnn(2, 3, true), caffe::TEST);
  ASSERT_TRUE(net.ok()) << net.status().message();
  std::vector<Shape> shapes;
  for (const Param& p : (*net)->graph().params()) shapes.push_back(p.shape);
  EXPECT_EQ(shapes, (std::vector<Shape>{{5, 4}, {5}, {5, 3}, {5, 5}, {5, 5}, {5}}));
}

TEST(RNN, Refusals) {
  EXPECT_THAT(refusal(input("x", {4}) + input("cont", {4}) +
                      layer("RNN", "bottom: 'x' bottom: 'cont' top: 'y'",
                            "recurrent_param { num_output: 2 }")),
              AllOf(HasSubstr("net:3: layer 'L'"), HasSubstr("(time, streams, ..)")));
  EXPECT_THAT(refusal(input("x", {4, 2, 3}) + input("cont", {4, 2}) + input("h", {1, 2, 3}) +
                      layer("RNN", "bottom: 'x' bottom: 'cont' bottom: 'h' top: 'y' top: 'l'",
                            "recurrent_param { num_output: 2 expose_hidden: true }")),
              HasSubstr("a first state must have shape 1 2 2 (4)"));
}

}  // namespace
}  // namespace cafetiere
