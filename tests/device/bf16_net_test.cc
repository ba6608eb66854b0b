// SPDX-License-Identifier: Apache-2.0
// Nets in bfloat16: products beside the reference's of the same rounded numbers, and what a net's layers
// make of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/base/bfloat16.h"
#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

/// A net whose inputs, parameters and tops' gradients are bfloat16 numbers.
struct RoundedNet {
  std::unique_ptr<TestNet> net;
  std::unique_ptr<Device> device;
  std::unique_ptr<Plan> plan;

  RoundedNet(const std::string& layers, std::unique_ptr<Device> on, int threads = 1,
             float largest_param = 1)
      : device(std::move(on)) {
    auto built = TestNet::build(layers, caffe::TRAIN);
    EXPECT_TRUE(built.ok()) << built.status().message();
    net = std::move(*built);
    auto made = net->plan(*device, 0);
    EXPECT_TRUE(made.ok()) << made.status().message();
    plan = std::move(*made);
    std::mt19937 random{11};
    std::uniform_real_distribution<float> number(-1, 1);
    const auto fill = [&](float* to, int64_t count, float most = 1) {
      for (int64_t i = 0; i < count; ++i) to[i] = from_bfloat16(to_bfloat16(most * number(random)));
    };
    for (const Plan::Blob& input : plan->inputs()) fill(input.data, input.shape.count());
    for (const Plan::Blob& output : plan->outputs()) fill(output.diff, output.shape.count());
    for (size_t i = 0; i < net->graph().params().size(); ++i) {
      fill(net->param(i).data(), int64_t(net->param(i).size()), largest_param);
    }
    ThreadPool pool(threads);
    EXPECT_TRUE(plan->run(pool, {}).ok());
  }

  static std::vector<float> values(const Plan::Blob& blob) {
    return {blob.data, blob.data + blob.shape.count()};
  }
  std::vector<float> top() const { return values(plan->outputs()[0]); }
  std::vector<float> bottom_diff() const { return values(plan->input_diffs()[0]); }
  std::vector<float> param_diff(size_t i) const {
    return {net->param_diff(i).begin(), net->param_diff(i).end()};
  }
};

float largest(const std::vector<float>& values) {
  float most = 0;
  for (float v : values) most = std::max(most, std::fabs(v));
  return most;
}

/// Within `units` in the last place of bfloat16, and what float32 leaves of a sum that is nearly zero.
void expect_rounded(const std::vector<float>& actual, const std::vector<float>& exact, float units,
                    const std::string& what) {
  ASSERT_EQ(actual.size(), exact.size()) << what;
  const float noise = 1e-6F * largest(exact);
  for (size_t i = 0; i < exact.size(); ++i) {
    const float unit = std::ldexp(1.F, std::ilogb(std::max(std::fabs(exact[i]), 1e-30F)) - 7);
    ASSERT_NEAR(actual[i], exact[i], units * unit + noise) << what << ", element " << i;
  }
}

std::unique_ptr<Device> bf16_device() { return make_cpu_device(Precision::kBFloat16); }

void check_products(const std::string& layers) {
  const RoundedNet exact(layers, make_ref_device());
  const RoundedNet net(layers, bf16_device());
  expect_rounded(net.top(), exact.top(), 2, layers + " top");
  expect_rounded(net.bottom_diff(), exact.bottom_diff(), 2, layers + " bottom diff");
  for (size_t i = 0; i < net.net->graph().params().size(); ++i) {
    const auto sums = exact.param_diff(i), own = net.param_diff(i);
    const float near = 3e-6F * largest(sums);
    for (size_t k = 0; k < sums.size(); ++k) {
      ASSERT_NEAR(own[k], sums[k], near) << layers << " parameter " << i << ", element " << k;
    }
  }
  const RoundedNet threads(layers, bf16_device(), 3);
  EXPECT_EQ(threads.top(), net.top());
  EXPECT_EQ(threads.bottom_diff(), net.bottom_diff());
  EXPECT_EQ(threads.param_diff(0), net.param_diff(0));
}

std::string convolution(const std::vector<int64_t>& dims, const std::string& fields) {
  return input("x", dims) + layer("Convolution", "name: 'c' bottom: 'x' top: 'y'",
                                  "convolution_param { " + fields + " }");
}

TEST(Bf16, ConvolutionsAgreeWithTheReference) {
  check_products(convolution({2, 32, 9, 11}, "num_output: 48 kernel_size: 3 pad: 1"));
  check_products(convolution({9, 16, 14, 14}, "num_output: 40 kernel_size: 1"));
  check_products(convolution({3, 24, 13, 13}, "num_output: 20 kernel_size: 1 stride: 2"));
  check_products(convolution({3, 24, 13, 12}, "num_output: 20 kernel_size: 1 stride: 3 pad: 2"));
  check_products(
      convolution({3, 8, 13, 12}, "num_output: 70 kernel_h: 3 kernel_w: 1 stride: 2 pad: 1"));
  check_products(convolution({20, 160, 6, 7}, "num_output: 90 kernel_size: 5 pad: 2"));
  check_products(convolution({2, 64, 31, 57}, "num_output: 24 kernel_size: 3 stride: 3"));
  check_products(convolution({2, 32, 40, 3}, "num_output: 24 kernel_size: 3 pad: 2 dilation: 2"));
  check_products(convolution({3, 64, 9, 9}, "num_output: 100 kernel_size: 1"));
  check_products(convolution({2, 16, 9, 40}, "num_output: 24 kernel_size: 3 dilation: 24 pad: 24"));
  check_products(convolution({2, 17, 41, 41}, "num_output: 24 kernel_size: 3 stride: 2 pad: 1"));
  check_products(convolution({1, 12, 20, 20}, "num_output: 8 kernel_size: 13"));
  check_products(convolution({2, 17, 15, 12}, "num_output: 33 kernel_size: 3 stride: 2 pad: 1"));
  check_products(convolution({2, 20, 17, 17}, "num_output: 10 kernel_size: 3 dilation: 3 pad: 2"));
  check_products(convolution({2, 3, 19, 19}, "num_output: 24 kernel_size: 7 stride: 2 pad: 3"));
  check_products(convolution({5, 1, 12, 12}, "num_output: 20 kernel_size: 5"));
  // Narrow sources: several products' pixels, many and few outputs, rows apart.
  check_products(convolution({2, 3, 47, 33}, "num_output: 130 kernel_size: 5 stride: 2 pad: 1"));
  check_products(convolution({3, 15, 9, 33}, "num_output: 5 kernel_size: 3 pad: 1"));
  check_products(convolution({2, 1, 27, 21}, "num_output: 17 kernel_size: 5 pad: 2"));
  check_products(convolution({3, 1, 13, 30}, "num_output: 6 kernel_size: 9 pad: 4 stride: 2"));
  check_products(convolution({2, 2, 15, 14}, "num_output: 20 kernel_size: 5 pad: 4"));
  check_products(convolution({2, 6, 21, 22}, "num_output: 32 kernel_size: 9 group: 2 pad: 1"));
  check_products(convolution({3, 3, 33, 35}, "num_output: 16 kernel_size: 11 pad: 5 stride: 4"));
  check_products(convolution({1, 3, 61, 45}, "num_output: 12 kernel_size: 11 stride: 4"));
  check_products(
      convolution({2, 2, 21, 12}, "num_output: 9 kernel_size: 3 dilation: 4 dilation: 1"));
  // Unfolded sources: several images a strip and fewer at the end, strides, rows cut into pieces.
  check_products(convolution({21, 20, 12, 12}, "num_output: 50 kernel_size: 5"));
  check_products(convolution({11, 10, 9, 7}, "num_output: 20 kernel_size: 3 pad: 2"));
  check_products(
      convolution({5, 18, 15, 22}, "num_output: 40 kernel_size: 4 stride: 2 dilation: 2 pad: 3"));
  check_products(convolution({2, 8, 6, 400}, "num_output: 70 kernel_size: 3 pad: 1"));
  check_products(convolution({3, 31, 40, 9}, "num_output: 17 kernel_h: 2 kernel_w: 7 pad: 3"));
  check_products(convolution({2, 24, 9, 9}, "num_output: 36 kernel_size: 3 group: 2 pad: 1"));
  check_products(convolution({2, 40, 30, 1}, "num_output: 12 kernel_h: 5 kernel_w: 1"));
  check_products(convolution({1, 520, 7, 7}, "num_output: 70 kernel_size: 3 pad: 1"));
}

TEST(Bf16, InnerProductsAgreeWithTheReference) {
  for (const auto& [n, k, outputs] : {std::array{1, 7, 3},
                                      {5, 800, 10},
                                      {64, 33, 50},
                                      {130, 600, 97},
                                      {32, 1040, 131},
                                      {128, 528, 64},
                                      {17, 48, 1},
                                      {130, 608, 97}}) {
    check_products(input("x", {n, k}) +
                   layer("InnerProduct", "name: 'ip' bottom: 'x' top: 'y'",
                         "inner_product_param { num_output: " + std::to_string(outputs) + " }"));
  }
}

/// A net in which every layer that takes any format has a part, and others between them.
const std::string kNet =
    input("x", {4, 3, 16, 16}) +
    layer("Convolution", "name: 'c1' bottom: 'x' top: 'c1'",
          "convolution_param { num_output: 16 kernel_size: 3 pad: 1 }") +
    layer("BatchNorm", "name: 'bn' bottom: 'c1' top: 'bn'") +
    layer("Scale", "name: 's' bottom: 'bn' top: 's'", "scale_param { bias_term: true }") +
    layer("ReLU", "name: 'r' bottom: 's' top: 's'") +
    layer("Convolution", "name: 'c2' bottom: 's' top: 'c2'",
          "convolution_param { num_output: 16 kernel_size: 3 pad: 1 }") +
    layer("Eltwise", "name: 'sum' bottom: 'c2' bottom: 's' top: 'sum'") +
    layer("Pooling", "name: 'p' bottom: 'sum' top: 'p'",
          "pooling_param { kernel_size: 3 stride: 2 }") +
    layer("Convolution", "name: 'c3' bottom: 'p' top: 'c3'",
          "convolution_param { num_output: 8 kernel_size: 1 }") +
    layer("Concat", "name: 'j' bottom: 'c3' bottom: 'p' top: 'j'") +
    layer("LRN", "name: 'n' bottom: 'j' top: 'n'", "lrn_param { local_size: 3 }") +
    layer("Pooling", "name: 'a' bottom: 'n' top: 'a'",
          "pooling_param { pool: AVE kernel_size: 2 stride: 2 }") +
    layer("TanH", "name: 't' bottom: 'a' top: 't'") +
    layer("InnerProduct", "name: 'ip' bottom: 't' top: 'y'",
          "inner_product_param { num_output: 10 }");

/// Of the largest value; 8 bits of precision, and a dozen layers.
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum += double(a[i] - b[i]) * double(a[i] - b[i]), size += double(b[i]) * double(b[i]);
  }
  return std::sqrt(sum / size);
}

TEST(Bf16, ANetIsNearTheSameInFloat32AndTheSameOnAnyThreads) {
  const RoundedNet exact(kNet, make_cpu_device()), net(kNet, bf16_device());
  EXPECT_LT(distance(net.top(), exact.top()), 0.02);
  EXPECT_GT(distance(net.top(), exact.top()), 1e-5) << "it is not computed in bfloat16";
  EXPECT_LT(distance(net.bottom_diff(), exact.bottom_diff()), 0.1);
  const RoundedNet threads(kNet, bf16_device(), 3);
  EXPECT_EQ(threads.top(), net.top());
  EXPECT_EQ(threads.bottom_diff(), net.bottom_diff());
  for (size_t i = 0; i < net.net->graph().params().size(); ++i) {
    EXPECT_EQ(threads.param_diff(i), net.param_diff(i)) << i;
  }
}

/// The largest distance of a row.
double row_distance(const std::vector<float>& a, const std::vector<float>& b, size_t width) {
  double most = 0;
  for (size_t i = 0; i < b.size(); i += width) {
    const auto row = [&](const std::vector<float>& v) {
      return std::vector<float>(v.begin() + int64_t(i), v.begin() + int64_t(i + width));
    };
    most = std::max(most, distance(row(a), row(b)));
  }
  return most;
}

// Whole and short tiles of queries, odd numbers of tokens, widths of one vector and of several.
TEST(Bf16, AttentionIsNearTheReference) {
  for (const auto& [dims, heads] :
       std::vector<std::pair<std::vector<int64_t>, int>>{{{2, 64, 32}, 1},
                                                         {{3, 1, 32}, 2},
                                                         {{2, 5, 48}, 3},
                                                         {{2, 131, 64}, 2},
                                                         {{1, 193, 48}, 1}}) {
    for (const char* causal : {"false", "true"}) {
      const std::string layers =
          input("x", dims) + layer("Attention", "name: 'a' bottom: 'x' top: 'y'",
                                   "attention_param { num_heads: " + std::to_string(heads) +
                                       " causal: " + causal + " }");
      SCOPED_TRACE(layers);
      const RoundedNet exact(layers, make_ref_device(), 1, 0.3F);
      const RoundedNet net(layers, bf16_device(), 1, 0.3F);
      const auto width = size_t(dims[2]);
      EXPECT_LT(row_distance(net.top(), exact.top(), width), 0.03);
      EXPECT_LT(row_distance(net.bottom_diff(), exact.bottom_diff(), width), 0.04);
      for (size_t i = 0; i < 4; ++i) {
        EXPECT_LT(distance(net.param_diff(i), exact.param_diff(i)), 0.03) << i;
      }
      int steps = 0;
      for (const StepInfo& step : net.plan->describe()) {
        steps += step.kernel.starts_with("bfloat16, tiles of queries");
      }
      EXPECT_EQ(steps, 2);
      const RoundedNet threads(layers, bf16_device(), 3, 0.3F);
      EXPECT_EQ(threads.bottom_diff(), net.bottom_diff());
    }
  }
}

// A head whose width is no whole vector is computed in float32.
TEST(Bf16, AttentionOfNarrowHeadsIsFloat32) {
  const RoundedNet net(input("x", {2, 5, 24}) + layer("Attention", "name: 'a' bottom: 'x' top: 'y'",
                                                      "attention_param { num_heads: 2 }"),
                       bf16_device());
  for (const StepInfo& step : net.plan->describe()) {
    if (step.name == "a attention") {
      EXPECT_THAT(step.kernel, ::testing::HasSubstr("not bfloat16: "));
    }
  }
}

TEST(Bf16, ActivationsAreStoredInIt) {
  const RoundedNet net(kNet, bf16_device());
  std::vector<std::string> converted;
  for (const StepInfo& step : net.plan->describe()) {
    if (step.name == "c2 forward") {
      EXPECT_EQ(step.format, "bfloat16") << step.kernel;
    }
    if (step.name.ends_with(" convert")) converted.push_back(step.name);
  }
  // What comes out and goes back in, and what the inner product flattens and its gradient unflattens.
  EXPECT_THAT(converted,
              ::testing::UnorderedElementsAre("x convert", "t convert", "t convert",
                                              "ip top convert", "y diff convert", "t diff convert",
                                              "t diff convert", "c1 diff convert"));
}

/// Losses, and layers that do not say that they take any format, compute in float32.
TEST(Bf16, LossesGetFloat32) {
  const RoundedNet net(kNet + input("t2", {4, 10}) +
                           layer("EuclideanLoss", "name: 'loss' bottom: 'y' bottom: 't2' top: 'l'"),
                       bf16_device());
  for (const StepInfo& step : net.plan->describe()) {
    if (step.name.starts_with("loss ")) {
      EXPECT_EQ(step.format, step.name.ends_with("convert") ? "float32>bfloat16" : "float32")
          << step.name;
    }
  }
}

}  // namespace
}  // namespace cafetiere
