// SPDX-License-Identifier: Apache-2.0
#include "core/train/plan_set.h"

#include <gtest/gtest.h>

#include "core/layers/registry.h"
#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

/// Three steps of a sequence for a batch of four.
constexpr const char* kSequences = R"(
  layer { name: "in" type: "CoSData" top: "words" cos_data_param { batch_size: 4
    top { name: "words" type: FLOAT_ARRAY channels: 3 sample_num_axes: 1 transpose: true } } }
  layer { name: "twice" type: "Power" bottom: "words" top: "twice" power_param { scale: 2 } })";

TEST(PlanSet, KnowsAFullBatchWhereTheBatchIsNotTheFirstAxis) {
  const auto net = parse_net(kSequences, "net");
  ASSERT_TRUE(net.ok()) << net.status().message();
  const auto graph = Graph::build(*net, {}, {.types = layer_types(), .fed = {}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const auto device = make_cpu_device();
  PlanSet plans(&*graph, device.get(), {}, false);
  const auto at = [&](int64_t rows) {
    const Result<Plan*> plan = plans.at(rows);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    return *plan;
  };
  Plan* const full = at(0);
  EXPECT_EQ(full->inputs()[0].shape, (Shape{3, 4}));
  EXPECT_EQ(at(3)->inputs()[0].shape, (Shape{3, 3})) << "as many rows as a sequence has steps";
  EXPECT_EQ(at(4), full);
  EXPECT_EQ(at(4), full);
  EXPECT_EQ(at(3), at(3));
}

}  // namespace
}  // namespace cafetiere
