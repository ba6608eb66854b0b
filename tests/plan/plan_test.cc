// SPDX-License-Identifier: Apache-2.0
// Compiled plans: fusion, the choice of outputs, losses and their gradients.
#include "core/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/filler.h"
#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::HasSubstr;

std::string conv_relu() {
  return input("x", {5, 3, 6, 6}) +
         layer("Convolution", "name: 'conv' bottom: 'x' top: 'c'",
               "convolution_param { num_output: 7 kernel_size: 3 weight_filler { type: 'xavier' } "
               "bias_filler { type: 'gaussian' } }") +
         layer("ReLU", "name: 'relu' bottom: 'c' top: 'r'") +
         layer("InnerProduct", "name: 'ip' bottom: 'r' top: 'i'",
               "inner_product_param { num_output: 4 weight_filler { type: 'xavier' } }") +
         layer("ReLU", "name: 'relu2' bottom: 'i' top: 'y'");
}

/// A net, a plan of it and one run on fixed values.
struct Compiled {
  Compiled(const std::string& layers, Device& device, const PlanOptions& options)
      : net(TestNet::build(layers, caffe::TRAIN).value()) {
    ParamPointers pointers;
    Random random(1);
    for (size_t i = 0; i < net->graph().params().size(); ++i) {
      const Param& p = net->graph().params()[i];
      EXPECT_TRUE(fill(p.filler, p.shape, net->param(i), random).ok());
      pointers.data.push_back(net->param(i).data());
      pointers.diff.push_back(net->param_diff(i).data());
    }
    auto compiled = Plan::compile(net->graph(), device, pointers, options);
    EXPECT_TRUE(compiled.ok()) << compiled.status().message();
    plan = std::move(compiled).value();
    for (const Plan::Blob& b : plan->inputs()) {
      random.gaussian(0, 1, {b.data, size_t(b.shape.count())});
    }
    for (const Plan::Blob& b : plan->outputs()) {
      if (b.diff && b.name == "y") random.gaussian(0, 1, {b.diff, size_t(b.shape.count())});
    }
  }
  void run(const RunContext& context = {}) {
    ThreadPool pool(1);
    EXPECT_TRUE(plan->run(pool, context).ok());
  }
  int steps_named(const std::string& text) const {
    int count = 0;
    for (const StepInfo& s : plan->describe()) count += s.name.find(text) != std::string::npos;
    return count;
  }
  std::vector<float> output(const std::string& name) const {
    for (const Plan::Blob& b : plan->outputs()) {
      if (b.name == name) return {b.data, b.data + b.shape.count()};
    }
    return {};
  }
  std::vector<float> param_diff(size_t i) {
    return {net->param_diff(i).begin(), net->param_diff(i).end()};
  }

  std::unique_ptr<TestNet> net;
  std::unique_ptr<Plan> plan;
};

// Keeping a blob readable forbids the fusion across it.
TEST(Plan, FusedReLUEqualsUnfused) {
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    const PlanOptions options{.backward = true, .feed_gradients = true, .outputs = {"y"}};
    PlanOptions apart = options;
    apart.outputs = {"c", "r", "i", "y"};
    Compiled fused(conv_relu(), *device, options), unfused(conv_relu(), *device, apart);
    EXPECT_EQ(fused.steps_named("relu forward") + fused.steps_named("relu2 forward"), 0);
    EXPECT_EQ(unfused.steps_named("relu forward") + unfused.steps_named("relu2 forward"), 2);
    fused.run();
    unfused.run();
    EXPECT_EQ(fused.output("y"), unfused.output("y"));
    for (size_t i = 0; i < fused.net->graph().params().size(); ++i) {
      expect_close(fused.param_diff(i), unfused.param_diff(i), 1e-6, "parameter gradient");
    }
  }
}

std::string scaled_normal(const std::string& scale_fields) {
  return input("x", {5, 3, 6, 6}) + layer("BatchNorm", "name: 'bn' bottom: 'x' top: 'n'") +
         layer("Scale", "name: 'scale' bottom: 'n' top: 's' " + scale_fields,
               "scale_param { bias_term: true filler { type: 'gaussian' } "
               "bias_filler { type: 'gaussian' } }") +
         layer("ReLU", "name: 'relu' bottom: 's' top: 'y'");
}

TEST(Plan, FusedScaleEqualsUnfused) {
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    for (const std::string fields : {"", "param { lr_mult: 0 }"}) {
      const PlanOptions options{.backward = true, .feed_gradients = true, .outputs = {"y"}};
      PlanOptions apart = options;
      apart.outputs = {"n", "y"};
      Compiled fused(scaled_normal(fields), *device, options);
      Compiled unfused(scaled_normal(fields), *device, apart);
      EXPECT_EQ(fused.steps_named("scale"), 0);
      EXPECT_GT(unfused.steps_named("scale"), 0);
      for (const float loss_scale : {1.F, 0.5F}) {
        RunContext context{.loss_scale = loss_scale};
        for (const bool accumulate : {false, true}) {
          context.accumulate = accumulate;
          fused.run(context);
          unfused.run(context);
        }
      }
      expect_close(fused.output("y"), unfused.output("y"), 1e-5, "y");
      for (size_t i = 0; i < fused.net->graph().params().size(); ++i) {
        expect_close(fused.param_diff(i), unfused.param_diff(i), 1e-5, "parameter gradient");
      }
    }
  }
}

// Where the scale lets nothing through, the normalisation has nothing to pass on.
TEST(Plan, FusedScaleKeepsItsPropagateDown) {
  const auto device = make_cpu_device();
  Compiled stopped(input("x", {5, 3, 6, 6}) +
                       layer("InnerProduct", "name: 'ip' bottom: 'x' top: 'i'",
                             "inner_product_param { num_output: 4 }") +
                       layer("BatchNorm", "name: 'bn' bottom: 'i' top: 'n'") +
                       layer("Scale", "name: 'scale' bottom: 'n' top: 's' propagate_down: false") +
                       layer("Reduction", "name: 'sum' bottom: 's' top: 'y' loss_weight: 1"),
                   *device, {.backward = true, .outputs = {"y"}});
  EXPECT_EQ(stopped.steps_named("scale"), 0);
  EXPECT_EQ(stopped.steps_named("bn gradients"), 1);
  EXPECT_EQ(stopped.steps_named("bn backward"), 0);
  EXPECT_EQ(stopped.steps_named("ip weight gradient"), 0);
}

// ReLUs that nothing applies: the search for who could once took cubic time and did not end here.
TEST(Plan, ManyThousandLayersCompile) {
  constexpr int kPairs = 5000;
  std::string net = input("x", {1, 1});
  for (int i = 0; i < kPairs; ++i) {
    const std::string n = std::to_string(i);
    net += layer("AbsVal", "name: 'abs" + n + "' bottom: 'x' top: 'x'") +
           layer("ReLU", "name: 'relu" + n + "' bottom: 'x' top: 'x'");
  }
  const auto device = make_ref_device();
  const Compiled deep(net, *device, {.outputs = {}});
  EXPECT_EQ(deep.plan->describe().size(), size_t(2 * kPairs));
}

// Wide channels stay side by side from the first convolution, which reads the images as they come,
// to the inner product.
TEST(Plan, WideNetsAreNotReordered) {
  const auto cpu = make_cpu_device();
  const auto conv = [](const std::string& name, const std::string& bottom) {
    return layer("Convolution", "name: '" + name + "' bottom: '" + bottom + "' top: '" + name + "'",
                 "convolution_param { num_output: 32 kernel_size: 3 pad: 1 }");
  };
  const std::string net =
      input("x", {16, 3, 12, 12}) + conv("a", "x") +
      layer("ReLU", "name: 'relu' bottom: 'a' top: 'r'") +
      layer("Pooling", "name: 'pool' bottom: 'r' top: 'p'",
            "pooling_param { pool: MAX kernel_size: 2 stride: 2 }") +
      layer("LRN", "name: 'norm' bottom: 'p' top: 'n'") + conv("b", "n") + conv("c", "n") +
      layer("Concat", "name: 'cat' bottom: 'b' bottom: 'c' top: 'cat'") +
      layer("Pooling", "name: 'whole' bottom: 'cat' top: 'w'",
            "pooling_param { pool: AVE global_pooling: true }") +
      layer("InnerProduct", "name: 'ip' bottom: 'w' top: 'y'",
            "inner_product_param { num_output: 4 weight_filler { type: 'xavier' } }");
  const Compiled forward(net, *cpu, {.outputs = {"y"}});
  for (const StepInfo& step : forward.plan->describe()) {
    const bool spatial = step.name.find("reorder") != std::string::npos && step.bytes > 20000;
    EXPECT_FALSE(spatial) << step.name << ": " << step.kernel;
  }
  const Compiled one(net, *cpu, {.batch = 1, .outputs = {"y"}});
  EXPECT_EQ(one.steps_named("reorder"), 0);
}

TEST(Plan, LeavesOutWhatNoOutputNeeds) {
  const auto cpu = make_cpu_device();
  const Compiled whole(conv_relu(), *cpu, {.outputs = {"y"}});
  const Compiled part(conv_relu(), *cpu, {.outputs = {"c"}});
  EXPECT_GT(whole.steps_named("ip forward"), 0);
  EXPECT_EQ(part.steps_named("ip forward"), 0);
  EXPECT_GT(part.steps_named("conv forward"), 0);
}

TEST(Plan, UnknownOutputs) {
  auto net = TestNet::build(conv_relu(), caffe::TEST);
  const auto cpu = make_cpu_device();
  std::vector<float> memory(10000);
  const auto plan =
      Plan::compile((*net)->graph(), *cpu, param_pointers((*net)->graph(), memory.data(), nullptr),
                    {.outputs = {"cc"}});
  EXPECT_THAT(plan.status().message(), HasSubstr("the net has no blob 'cc'; did you mean \"c\"?"));
}

TEST(Plan, EmptyBlobsAreRefused) {
  const auto net =
      TestNet::build(input("x", {0, 2}) + layer("InnerProduct", "bottom: 'x' top: 'y'",
                                                "inner_product_param { num_output: 2 }"),
                     caffe::TEST);
  ASSERT_TRUE(net.ok()) << net.status().message();
  const auto device = make_cpu_device();
  float memory[64] = {};
  const auto plan =
      Plan::compile((*net)->graph(), *device, param_pointers((*net)->graph(), memory, nullptr), {});
  EXPECT_THAT(plan.status().message(), HasSubstr("blob 'x' has no values"));
}

TEST(Plan, AForwardPlanNeedsLessMemory) {
  const auto cpu = make_cpu_device();
  const Compiled train(conv_relu(), *cpu,
                       {.backward = true, .feed_gradients = true, .outputs = {}});
  const Compiled test(conv_relu(), *cpu, {});
  EXPECT_LT(test.plan->arena_bytes(), train.plan->arena_bytes());
}

TEST(Plan, WeightsOfLossesCount) {
  const auto net = [](const std::string& weight) {
    return input("a", {3, 4}) + input("b", {3, 4}) +
           layer("InnerProduct", "name: 'ip' bottom: 'a' top: 'p'",
                 "inner_product_param { num_output: 4 weight_filler { type: 'xavier' } }") +
           layer("EuclideanLoss", "bottom: 'p' bottom: 'b' top: 'loss'", weight);
  };
  const auto cpu = make_cpu_device();
  Compiled plain(net(""), *cpu, {.backward = true, .outputs = {}}),
      half(net("loss_weight: 0.5"), *cpu, {.backward = true, .outputs = {}});
  plain.run();
  half.run();
  EXPECT_FLOAT_EQ(half.plan->loss(), plain.plan->loss() / 2);
  EXPECT_EQ(half.plan->outputs()[0].loss_weight, 0.5F);
  std::vector<float> halved = plain.param_diff(0);
  for (float& v : halved) v /= 2;
  expect_close(half.param_diff(0), halved, 1e-6, "weight 0.5");
  plain.run({.loss_scale = 0.5F});
  expect_close(plain.param_diff(0), halved, 1e-6, "scale 0.5");
}

}  // namespace
}  // namespace cafetiere
