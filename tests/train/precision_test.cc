// SPDX-License-Identifier: Apache-2.0
// Trainings in bf16x6: the same bits on any ranks, the precision that states keep, and what ranks
// agree on.
#include <gtest/gtest.h>

#include <thread>

#include "core/comm/group.h"
#include "core/model/solver_state.h"
#include "core/train/common_precision.h"
#include "tests/train/jobs.h"

namespace cafetiere {
namespace {

/// Of its two inner products the first one has rows enough.
constexpr const char* kWideNet = R"(
  layer { name: "data" type: "MemoryData" top: "data" top: "label"
    transform_param { scale: 0.00390625 }
    memory_data_param { batch_size: 12 channels: 8 height: 24 width: 40 } }
  layer { name: "rows" type: "InnerProduct" bottom: "data" top: "rows"
    inner_product_param { axis: 3 num_output: 48 weight_filler { type: "xavier" } } }
  layer { name: "relu" type: "ReLU" bottom: "rows" top: "rows" }
  layer { name: "ip" type: "InnerProduct" bottom: "rows" top: "ip"
    inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })";

Job of(const std::string& precision, int ranks = 1, int threads = 1) {
  return {.net = kWideNet,
          .pixels = 8 * 24 * 40,
          .ranks = ranks,
          .threads = threads,
          .max_iter = 6,
          .solver = kSolver + (" precision: '" + precision + "'"),
          .rows = 200};
}

TEST(Bf16x6, HasTheSameBitsOnAnyNumberOfRanks) {
  const Outcome one = train(of("bf16x6"));
  ASSERT_EQ(one.losses.size(), 6U);
  for (int ranks = 1; ranks <= 4; ++ranks) {
    expect_same(one, train(of("bf16x6", ranks, 2)), std::to_string(ranks) + " ranks");
  }
  const Outcome plain = train(of("float32"));
  EXPECT_FALSE(plain.model == one.model);
  EXPECT_NEAR(plain.losses.back(), one.losses.back(), 1e-4 * plain.losses.back());
}

/// Whatever this machine would choose for a new training.
TEST(Bf16x6, AStateKeepsItsPrecision) {
  for (const std::string precision : {"float32", "bf16x6"}) {
    const Outcome whole = train(of(precision));
    Job first = of(precision);
    first.max_iter = 3;
    const Outcome half = train(first);
    const auto state = parse_solver_state(std::as_bytes(std::span(half.state)));
    ASSERT_TRUE(state.ok());
    EXPECT_EQ(state->precision, precision == "float32" ? "" : precision);
    for (int ranks : {1, 3}) {
      Job rest = of("auto_float32", ranks);
      rest.from = &half;
      const Outcome outcome = train(rest);
      EXPECT_TRUE(outcome.model == whole.model) << precision << ", " << ranks << " ranks";
      EXPECT_TRUE(outcome.state == whole.state) << precision << ", " << ranks << " ranks";
    }
  }
}

TEST(CommonPrecision, IsFloat32UnlessAllRanksPreferTheSame) {
  const auto agreed = [](const std::vector<Precision>& preferred) {
    auto groups = make_local_groups(int(preferred.size()));
    std::vector<Precision> common(preferred.size());
    std::vector<std::thread> threads;
    for (size_t r = 0; r < preferred.size(); ++r) {
      threads.emplace_back([&, r] {
        const auto one = common_precision(groups[r].get(), preferred[r]);
        ASSERT_TRUE(one.ok()) << one.status().message();
        common[r] = *one;
      });
    }
    for (std::thread& thread : threads) thread.join();
    return common;
  };
  using enum Precision;
  EXPECT_EQ(agreed({kBf16x6, kBf16x6}), std::vector(2, kBf16x6));
  EXPECT_EQ(agreed({kBf16x6, kFloat32, kBf16x6}), std::vector(3, kFloat32));
  EXPECT_EQ(agreed({kBFloat16, kBFloat16}), std::vector(2, kBFloat16));
  EXPECT_EQ(*common_precision(nullptr, kBf16x6), kBf16x6);
  EXPECT_EQ(*common_precision(nullptr, kFloat32), kFloat32);
}

}  // namespace
}  // namespace cafetiere
