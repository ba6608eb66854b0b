// SPDX-License-Identifier: Apache-2.0
// A bound plan runs without a single allocation. The program counts all that operator new gives.
#include "core/plan/plan.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/layers/harness.h"

namespace {

std::atomic<int64_t> allocations = 0;

void* counted(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) {
  ++allocations;
  void* memory = nullptr;
  return ::posix_memalign(&memory, std::max(alignment, sizeof(void*)), bytes) == 0 ? memory
                                                                                   : nullptr;
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, std::size_t(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace cafetiere {
namespace {

std::string convolution(const std::string& name, const std::string& from, int outputs, int kernel) {
  return layer("Convolution", "name: '" + name + "' bottom: '" + from + "' top: '" + name + "'",
               "convolution_param { num_output: " + std::to_string(outputs) +
                   " kernel_size: " + std::to_string(kernel) + " pad: 1 }");
}

/// Images, narrow and wide convolutions, and what stands between them.
std::string images() {
  return input("x", {32, 3, 16, 16}) + convolution("a", "x", 20, 5) +
         layer("Pooling", "name: 'p' bottom: 'a' top: 'p'",
               "pooling_param { pool: MAX kernel_size: 2 stride: 2 }") +
         layer("LRN", "name: 'n' bottom: 'p' top: 'n'") + convolution("b", "n", 32, 3) +
         layer("BatchNorm", "name: 'bn' bottom: 'b' top: 'bn'") +
         layer("Scale", "name: 's' bottom: 'bn' top: 's'") +
         layer("ReLU", "name: 'r' bottom: 's' top: 's'") + convolution("c", "s", 32, 3) +
         layer("Eltwise", "name: 'sum' bottom: 's' bottom: 'c' top: 'sum'", "") +
         layer("Dropout", "name: 'd' bottom: 'c' top: 'd'") +
         layer("Concat", "name: 'cat' bottom: 'c' bottom: 'd' top: 'cat'") +
         layer("Pooling", "name: 'q' bottom: 'cat' top: 'q'",
               "pooling_param { pool: AVE kernel_size: 3 stride: 2 }") +
         layer("InnerProduct", "name: 'ip' bottom: 'q' top: 'y'",
               "inner_product_param { num_output: 10 }");
}

/// Sequences: attention with its normalisation and feed-forward part.
std::string sequences() {
  return input("x", {4, 12, 32}) + layer("LayerNorm", "name: 'n' bottom: 'x' top: 'n'") +
         layer("Attention", "name: 'at' bottom: 'n' top: 'at'",
               "attention_param { num_heads: 4 }") +
         layer("InnerProduct", "name: 'w' bottom: 'at' top: 'w'",
               "inner_product_param { num_output: 64 axis: 2 }") +
         layer("GELU", "name: 'g' bottom: 'w' top: 'y'");
}

class Allocations : public testing::TestWithParam<std::tuple<std::string, Precision>> {};

TEST_P(Allocations, AreNoneInAPassThatRunsAgain) {
  const auto net = TestNet::build(std::get<0>(GetParam()), caffe::TRAIN);
  ASSERT_TRUE(net.ok()) << net.status().message();
  const auto device = make_cpu_device(std::get<1>(GetParam()));
  const auto plan = (*net)->plan(*device, 0);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ThreadPool pool(2);
  ASSERT_TRUE((*plan)->run(pool, {.seed = 1}).ok());
  const int64_t before = allocations;
  ASSERT_TRUE((*plan)->run(pool, {.seed = 1, .sub_step = 1}).ok());
  EXPECT_EQ(allocations - before, 0);
  EXPECT_GT(before, 0);  // else they are not counted
}

INSTANTIATE_TEST_SUITE_P(Nets, Allocations,
                         testing::Combine(testing::Values(images(), sequences()),
                                          testing::Values(Precision::kFloat32,
                                                          Precision::kBFloat16)),
                         [](const auto& info) {
                           return std::string(info.index < 2 ? "Images" : "Sequences") +
                                  (std::get<1>(info.param) == Precision::kFloat32 ? "InFloat32"
                                                                                  : "InBfloat16");
                         });

}  // namespace
}  // namespace cafetiere
