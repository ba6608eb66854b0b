// SPDX-License-Identifier: Apache-2.0
// Plans of parameters that do not change: what is folded, what is computed once, what is shared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/plan/plan.h"
#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

const std::string kNormalized =
    input("x", {3, 4, 6, 6}) +
    layer("Convolution", "name: 'conv' bottom: 'x' top: 'c'",
          "convolution_param { num_output: 8 kernel_size: 3 bias_term: false }") +
    layer("BatchNorm", "name: 'bn' bottom: 'c' top: 'b'") +
    layer("Scale", "name: 'scale' bottom: 'b' top: 's'", "scale_param { bias_term: true }") +
    layer("ReLU", "name: 'relu' bottom: 's' top: 's'") +
    layer("InnerProduct", "name: 'ip' bottom: 's' top: 'i'",
          "inner_product_param { num_output: 5 }") +
    layer("Scale", "name: 'last' bottom: 'i' top: 'y'");

/// A net in TEST phase with positive parameters, as variances must be, and its plans.
struct FixedNet {
  explicit FixedNet(const std::string& layers) : net(TestNet::build(layers, caffe::TEST).value()) {
    std::mt19937 random(1);
    for (size_t i = 0; i < net->graph().params().size(); ++i) {
      for (float& value : net->param(i)) value = 0.25F + float(random() % 1000) / 1000;
      pointers.data.push_back(net->param(i).data());
      pointers.diff.push_back(nullptr);
    }
  }
  std::unique_ptr<Plan> plan(const PlanOptions& options) {
    auto plan = Plan::compile(net->graph(), *device, pointers, options);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    return *std::move(plan);
  }
  /// The first output for fixed inputs.
  static std::vector<float> run(Plan& plan, int threads = 1) {
    std::mt19937 random(2);
    for (const Plan::Blob& input : plan.inputs()) {
      for (int64_t i = 0; i < input.shape.count(); ++i) {
        input.data[i] = float(random() % 2000) / 1000 - 1;
      }
    }
    ThreadPool pool(threads);
    EXPECT_TRUE(plan.run(pool, {}).ok());
    const Plan::Blob& y = plan.outputs().front();
    return {y.data, y.data + y.shape.count()};
  }

  std::unique_ptr<TestNet> net;
  ParamPointers pointers;
  std::unique_ptr<Device> device = make_cpu_device();
};

void expect_near(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  float largest = 0;
  for (float value : b) largest = std::max(largest, std::fabs(value));
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 2e-6F * largest) << i;
}

int steps_of(const Plan& plan, const std::string& name) {
  int count = 0;
  for (const StepInfo& step : plan.describe()) count += step.name.starts_with(name);
  return count;
}

TEST(FixedPlan, FoldsNormalisationsAndAgreesWithTheReference) {
  for (const int64_t batch : {1, 3, 9}) {
    FixedNet fixed(kNormalized), plain(kNormalized);
    plain.device = make_ref_device();
    const auto values = std::make_shared<FixedValues>();
    const auto folded = fixed.plan({.batch = batch, .outputs = {"y"}, .fixed = values});
    const auto reference = plain.plan({.batch = batch, .outputs = {"y"}});
    expect_near(FixedNet::run(*folded), FixedNet::run(*reference));
    EXPECT_EQ(steps_of(*folded, "bn forward") + steps_of(*folded, "scale forward"), 0);
    EXPECT_EQ(steps_of(*folded, "last forward"), 0);
    EXPECT_EQ(steps_of(*reference, "bn forward"), 1);
  }
}

/// A tied decoder: its weights are the encoder's, in a shape of its own.
TEST(FixedPlan, FoldsIntoSharedWeightsOfAnotherShape) {
  const std::string tied =
      input("x", {3, 4}) +
      layer("InnerProduct", "name: 'code' bottom: 'x' top: 'c' param { name: 'w' }",
            "inner_product_param { num_output: 6 bias_term: false }") +
      layer("TanH", "name: 'tanh' bottom: 'c' top: 't'") +
      layer("InnerProduct",
            "name: 'decode' bottom: 't' top: 'd' param { name: 'w' share_mode: PERMISSIVE }",
            "inner_product_param { num_output: 4 bias_term: false }") +
      layer("Scale", "name: 'scale' bottom: 'd' top: 'y'", "scale_param { bias_term: true }");
  FixedNet fixed(tied), plain(tied);
  plain.device = make_ref_device();
  const auto folded = fixed.plan({.outputs = {"y"}, .fixed = std::make_shared<FixedValues>()});
  const auto reference = plain.plan({.outputs = {"y"}});
  EXPECT_EQ(steps_of(*folded, "scale forward"), 0);
  expect_near(FixedNet::run(*folded), FixedNet::run(*reference));
}

TEST(FixedPlan, InnerProductsInBfloat16HaveTheBitsOfPlansThatAreNotFixed) {
  for (const auto& [rows, inputs, outputs] :
       {std::array{1, 48, 33}, {3, 1040, 70}, {17, 512, 32}, {128, 16, 5}}) {
    const std::string ip =
        input("x", {rows, inputs}) +
        layer("InnerProduct", "name: 'ip' bottom: 'x' top: 'y'",
              "inner_product_param { num_output: " + std::to_string(outputs) + " }") +
        layer("ReLU", "name: 'relu' bottom: 'y' top: 'y'");
    FixedNet net(ip);
    net.device = make_cpu_device(Precision::kBFloat16);
    const auto plan = net.plan({.outputs = {"y"}});
    const auto fixed = net.plan({.outputs = {"y"}, .fixed = std::make_shared<FixedValues>()});
    EXPECT_EQ(FixedNet::run(*fixed), FixedNet::run(*plan)) << rows << " rows";
    for (float& value : net.net->param(0)) value = 1e9F;  // read once
    EXPECT_NE(FixedNet::run(*fixed), FixedNet::run(*plan)) << rows << " rows";
  }
}

TEST(FixedPlan, KeepsABlobThatIsAskedFor) {
  FixedNet fixed(kNormalized), plain(kNormalized);
  const auto values = std::make_shared<FixedValues>();
  const auto folded = fixed.plan({.outputs = {"b", "y"}, .fixed = values});
  const auto reference = plain.plan({.outputs = {"b", "y"}});
  expect_near(FixedNet::run(*folded), FixedNet::run(*reference));
  EXPECT_EQ(steps_of(*folded, "scale forward"), 1);  // of a blob that somebody reads
}

TEST(FixedPlan, ThreadsAndRunsDoNotMatter) {
  FixedNet fixed(kNormalized);
  const auto values = std::make_shared<FixedValues>();
  const auto plan = fixed.plan({.batch = 1, .outputs = {"y"}, .fixed = values});
  const std::vector<float> once = FixedNet::run(*plan);
  EXPECT_EQ(FixedNet::run(*plan, 3), once);
  EXPECT_EQ(FixedNet::run(*plan, 2), once);
}

TEST(FixedPlan, PlansShareWhatTheFirstRunComputes) {
  FixedNet fixed(kNormalized);
  const auto values = std::make_shared<FixedValues>();
  const auto first = fixed.plan({.outputs = {"y"}, .fixed = values});
  const auto second = fixed.plan({.outputs = {"y"}, .fixed = values});
  EXPECT_FALSE(values->ready);
  const std::vector<float> result = FixedNet::run(*first);
  EXPECT_TRUE(values->ready);
  // The convolution's weights are not read again: only their packed form is.
  for (float& value : fixed.net->param(0)) value = 1e9F;
  EXPECT_EQ(FixedNet::run(*first), result);
  EXPECT_EQ(FixedNet::run(*second), result);
  EXPECT_GE(values->bytes, int64_t(8 * 4 * 9 * sizeof(float)));
}

/// An inner product of n rows on a device.
std::vector<float> product(std::unique_ptr<Device> device, int64_t n, int64_t k, int64_t outputs,
                           bool relu, int threads) {
  FixedNet net(input("x", {n, k}) +
               layer("InnerProduct", "name: 'ip' bottom: 'x' top: 'y'",
                     "inner_product_param { num_output: " + std::to_string(outputs) + " }") +
               (relu ? layer("ReLU", "name: 'relu' bottom: 'y' top: 'y'") : ""));
  net.device = std::move(device);
  const auto plan = net.plan({});
  return FixedNet::run(*plan, threads);
}

TEST(FewRows, AgreeWithTheReferenceOnAnyNumberOfThreads) {
  for (const int64_t n : {1, 2, 3, 4, 5, 16}) {
    for (const int64_t k : {1, 7, 8, 9, 16, 17, 31, 200}) {
      for (const int64_t outputs : {1, 3, 16, 35}) {
        SCOPED_TRACE(testing::Message() << n << " x " << k << " x " << outputs);
        const bool relu = k % 2 == 0;
        const auto fast = product(make_cpu_device(), n, k, outputs, relu, 1);
        expect_near(fast, product(make_ref_device(), n, k, outputs, relu, 1));
        EXPECT_EQ(product(make_cpu_device(), n, k, outputs, relu, 3), fast);
      }
    }
  }
}

TEST(FewRows, GiveTheBitsOfManyRows) {
  for (const int64_t k : {1, 9, 64, 65, 257, 1030}) {
    for (const int64_t outputs : {1, 10, 32, 70}) {
      const bool relu = outputs == 10;
      const auto many = product(make_cpu_device(), 200, k, outputs, relu, 1);
      for (const int64_t n : {1, 2, 3, 4, 5, 8, 9, 12, 16, 17, 64, 65, 80, 81, 129, 193}) {
        SCOPED_TRACE(testing::Message() << n << " x " << k << " x " << outputs);
        const auto few = product(make_cpu_device(), n, k, outputs, relu, 1);
        EXPECT_EQ(few, std::vector<float>(many.begin(), many.begin() + n * outputs));
      }
    }
  }
}

}  // namespace
}  // namespace cafetiere
