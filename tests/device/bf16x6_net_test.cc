// SPDX-License-Identifier: Apache-2.0
// Nets in the precision bf16x6 beside the reference device, and on threads.
#include <gmock/gmock.h>

#include <cmath>

#include "core/device/isa.h"
#include "core/plan/plan.h"
#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

std::unique_ptr<Device> bf16x6_device() { return make_cpu_device(Precision::kBf16x6); }

/// Passes of a product: forward, data gradient, weight gradient.
int products(const std::string& layers, int64_t batch) {
  const auto net = TestNet::build(layers, caffe::TRAIN);
  const auto device = bf16x6_device();
  const auto plan = (*net)->plan(*device, batch);
  int count = 0;
  for (const StepInfo& step : (*plan)->describe()) count += step.kernel.starts_with("bf16 x 6");
  return count;
}

/// Two passes, of which the second adds to the gradients.
void check(const std::string& layers, int64_t batch) {
  SCOPED_TRACE(layers);
  EXPECT_EQ(products(layers, batch), 3);
  const LayerCase c{.layers = layers};
  const auto ref = make_ref_device(), cpu = bf16x6_device();
  const Figures exact = random_figures(c, *ref, batch, 1, 2);
  const Figures own = random_figures(c, *cpu, batch, 1, 2);
  for (const auto& [name, values] : exact) expect_close(own.at(name), values, 2e-5, name);
  EXPECT_EQ(random_figures(c, *cpu, batch, 3, 2), own);
}

std::string inner_product(const std::vector<int64_t>& dims, const std::string& fields) {
  return input("x", dims) + layer("InnerProduct", "name: 'ip' bottom: 'x' top: 'y'",
                                  "inner_product_param { " + fields + " }");
}

std::string conv(const std::vector<int64_t>& dims, const std::string& fields) {
  return input("x", dims) + layer("Convolution", "name: 'c' bottom: 'x' top: 'y'",
                                  "convolution_param { " + fields + " }");
}

TEST(Bf16x6, InnerProductsAgreeWithTheReference) {
  check(inner_product({256, 64}, "num_output: 32"), 256);
  check(inner_product({300, 70}, "num_output: 45"), 300);
  check(inner_product({257, 600}, "num_output: 33"), 257);          // a depth of two pieces
  check(inner_product({5, 77, 40}, "num_output: 300 axis: 2"), 5);  // rows of several parts
  check(inner_product({260, 290}, "num_output: 520"), 260);         // several regions
  check(
      inner_product({300, 70}, "num_output: 45") + layer("ReLU", "name: 'r' bottom: 'y' top: 'y'"),
      300);
}

TEST(Bf16x6, PointwiseConvolutionsAgreeWithTheReference) {
  check(conv({3, 64, 10, 10}, "num_output: 48 kernel_size: 1"), 3);
  check(conv({2, 40, 13, 11}, "num_output: 70 kernel_size: 1 bias_term: false"), 2);
  check(conv({9, 33, 50}, "num_output: 32 kernel_size: 1 axis: 1"), 9);
}

TEST(Bf16x6, OtherProductsStayInFloat32) {
  for (const auto& [layers, batch] :
       {std::pair{inner_product({255, 64}, "num_output: 32"), 255},
        {inner_product({300, 31}, "num_output: 32"), 300},
        {inner_product({300, 64}, "num_output: 32 transpose: true"), 300},
        {conv({3, 64, 10, 10}, "num_output: 48 kernel_size: 3"), 3},
        {conv({3, 64, 20, 20}, "num_output: 48 kernel_size: 1 stride: 2"), 3},
        {conv({3, 64, 10, 10}, "num_output: 64 kernel_size: 1 group: 2"), 3}}) {
    EXPECT_EQ(products(layers, batch), 0) << layers;
    const LayerCase c{.layers = layers};
    const auto plain = make_cpu_device(), cpu = bf16x6_device();
    EXPECT_EQ(random_figures(c, *cpu, batch, 2, 1), random_figures(c, *plain, batch, 2, 1));
  }
}

}  // namespace
}  // namespace cafetiere
