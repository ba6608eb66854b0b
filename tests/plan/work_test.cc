// SPDX-License-Identifier: Apache-2.0
// What `explain` and `time` count of a step: operations, bytes and number formats.
#include <gtest/gtest.h>

#include <map>

#include "core/plan/lower.h"
#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

constexpr int64_t kFloat = 4;

std::map<std::string, StepInfo> steps_of(const std::string& layers, bool backward) {
  const auto net = TestNet::build(layers, caffe::TRAIN);
  const auto device = make_ref_device();
  const auto plan = PlanOutline::make(
      (*net)->graph(), *device, {.backward = backward, .feed_gradients = backward, .outputs = {}});
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  std::map<std::string, StepInfo> steps;
  for (const StepInfo& step : plan->steps) steps.emplace(step.name, step);
  return steps;
}

TEST(Work, OfAConvolutionIsThatOfItsShapes) {
  const std::string net =
      input("x", {2, 3, 5, 5}) + layer("Convolution", "name: 'conv' bottom: 'x' top: 'y'",
                                       "convolution_param { num_output: 4 kernel_size: 3 }");
  constexpr int64_t x = 2 * 3 * 5 * 5, weights = 4 * 3 * 9, y = 2 * 4 * 3 * 3;
  constexpr double flops = 2.0 * y * 3 * 9;
  const auto steps = steps_of(net, true);
  const StepInfo& forward = steps.at("conv forward");
  EXPECT_EQ(forward.flops, flops);
  EXPECT_EQ(forward.bytes, kFloat * (x + weights + 4 + y));
  EXPECT_EQ(forward.format, "float32");
  EXPECT_FALSE(forward.backward);
  const StepInfo& gradient = steps.at("conv weight gradient");
  EXPECT_EQ(gradient.flops, flops);
  EXPECT_EQ(gradient.bytes, kFloat * (x + y + weights));
  EXPECT_TRUE(gradient.backward);
  EXPECT_EQ(steps.at("conv backward").bytes, kFloat * (y + weights + x));
}

TEST(Work, OfAnInnerProductIsThatOfItsShapes) {
  const std::string net =
      input("x", {8, 6}) + layer("InnerProduct", "name: 'ip' bottom: 'x' top: 'y'",
                                 "inner_product_param { num_output: 3 bias_term: false }");
  const StepInfo forward = steps_of(net, false).at("ip forward");
  EXPECT_EQ(forward.flops, 2.0 * 8 * 6 * 3);
  EXPECT_EQ(forward.bytes, kFloat * (8 * 6 + 6 * 3 + 8 * 3));
}

TEST(Work, ABufferThatIsReadTwiceMovesOnce) {
  const std::string net =
      input("x", {8, 6}) + layer("Eltwise", "name: 'sum' bottom: 'x' bottom: 'x' top: 'y'");
  const StepInfo sum = steps_of(net, false).at("sum forward");
  EXPECT_EQ(sum.bytes, kFloat * 2 * 8 * 6);
  EXPECT_EQ(sum.flops, 0);
}

TEST(Work, NamesTheFormatsOfWhatIsReadAndWritten) {
  LoweredNet net;
  const TensorId x = net.program.external("x", {2, 8});
  net.program.read(x, {Layout::kRowMajor, Format::kBFloat16});
  const std::vector<StepInfo> steps = net.steps();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].format, "float32>bfloat16");
  EXPECT_EQ(steps[0].bytes, (4 + 2) * 2 * 8);
}

}  // namespace
}  // namespace cafetiere
