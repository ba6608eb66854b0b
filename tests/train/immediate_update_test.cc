// SPDX-License-Identifier: Apache-2.0
// Parameters that are stepped within backward: the same bits as when all gradients are kept until its
// end, which a solver that clips needs.
#include "core/train/immediate_update.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/model/prototxt.h"
#include "tests/train/jobs.h"

namespace cafetiere {
namespace {

constexpr const char* kPolicy =
    "base_lr: 0.002 lr_policy: 'inv' gamma: 0.001 power: 0.75 weight_decay: 0.0005 max_iter: 12 "
    "display: 1 random_seed: 7 ";
constexpr const char* kNoClipping = " clip_gradients: 1e30";  // but the gradients are all kept

/// Two inner products that share large weights, one that no loss depends on, and one that is frozen.
constexpr const char* kSharedNet = R"(
  name: "shared"
  layer { name: "rows" type: "MemoryData" top: "data" top: "label"
    transform_param { scale: 0.01 }
    memory_data_param { batch_size: 32 channels: 300 height: 1 width: 1 } }
  layer { name: "a" type: "InnerProduct" bottom: "data" top: "a" param { name: "w" } param { name: "b" }
    inner_product_param { num_output: 300 weight_filler { type: "xavier" } } }
  layer { name: "relu" type: "ReLU" bottom: "a" top: "a" }
  layer { name: "b" type: "InnerProduct" bottom: "a" top: "c" param { name: "w" } param { name: "b" }
    inner_product_param { num_output: 300 weight_filler { type: "xavier" } } }
  layer { name: "frozen" type: "InnerProduct" bottom: "c" top: "d" param { lr_mult: 0 }
    param { lr_mult: 0 }
    inner_product_param { num_output: 300 weight_filler { type: "xavier" } } }
  layer { name: "idle" type: "InnerProduct" bottom: "d" top: "e"
    inner_product_param { num_output: 300 weight_filler { type: "xavier" } } }
  layer { name: "silence" type: "Silence" bottom: "e" }
  layer { name: "ip" type: "InnerProduct" bottom: "d" top: "ip"
    inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })";

/// Rows of weights of more than one piece, and fewer outputs than a block has.
std::string wide_net(int inputs) {
  return fmt::format(R"(
  name: "wide"
  layer {{ name: "rows" type: "MemoryData" top: "data" top: "label"
    transform_param {{ scale: 0.01 }}
    memory_data_param {{ batch_size: 32 channels: {} height: 1 width: 1 }} }}
  layer {{ name: "a" type: "InnerProduct" bottom: "data" top: "a"
    inner_product_param {{ num_output: 40 weight_filler {{ type: "xavier" }} }} }}
  layer {{ name: "ip" type: "InnerProduct" bottom: "a" top: "ip"
    inner_product_param {{ num_output: 10 weight_filler {{ type: "xavier" }} }} }}
  layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }})",
                     inputs);
}

struct GivenNet {
  const char* name;
  std::string text;
  int pixels;
};
class ImmediateUpdates : public testing::TestWithParam<GivenNet> {};

TEST_P(ImmediateUpdates, HaveTheBitsOfAnUpdateAtTheEnd) {
  const GivenNet& net = GetParam();
  for (const std::string rule :
       {"momentum: 0.9", "type: 'Nesterov' momentum: 0.9", "type: 'Adam' momentum: 0.9",
        "momentum: 0.9 regularization_type: 'L1'", "momentum: 0.9 precision: 'bf16'"}) {
    for (int threads : {1, 3}) {
      const auto job = [&](const std::string& more) {
        return Job{.net = net.text.c_str(),
                   .pixels = net.pixels,
                   .threads = threads,
                   .max_iter = 12,
                   .solver = kPolicy + rule + more,
                   .shards = 1};
      };
      const Outcome at_end = train(job(kNoClipping));
      ASSERT_EQ(at_end.losses.size(), 12U);
      expect_same(at_end, train(job("")), rule);
    }
  }
}

TEST_P(ImmediateUpdates, GoOnFromAStateOfEitherKind) {
  const GivenNet& net = GetParam();
  const auto job = [&](const std::string& more, int max_iter, const Outcome* from) {
    return Job{.net = net.text.c_str(),
               .pixels = net.pixels,
               .max_iter = max_iter,
               .from = from,
               .solver = std::string(kPolicy) + "momentum: 0.9" + more,
               .shards = 1};
  };
  const Outcome whole = train(job("", 12, nullptr));
  for (const std::string first : {"", kNoClipping}) {
    const Outcome half = train(job(first, 5, nullptr));
    const Outcome rest = train(job(first.empty() ? kNoClipping : "", 12, &half));
    EXPECT_EQ(whole.model == rest.model, true) << "weights differ";
    EXPECT_EQ(whole.state == rest.state, true) << "history differs";
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, ImmediateUpdates,
                         testing::Values(GivenNet{"LeNet", kLeNet, 28 * 28},
                                         GivenNet{"Mixed", kMixedNet, 144},
                                         GivenNet{"Shared", kSharedNet, 300},
                                         GivenNet{"Wide", wide_net(5120), 5120},
                                         GivenNet{"FewLast", wide_net(5008), 5008}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ImmediateUpdate, NeedsNothingOfAllGradientsTogether) {
  const auto suits = [](const std::string& more) {
    const SolverText solver = *parse_solver("base_lr: 0.1 " + more, "solver");
    return ImmediateUpdate::suits(solver.param, **make_update_rule(solver.param));
  };
  EXPECT_TRUE(suits(""));
  for (const std::string more :
       {"clip_gradients: 1", "iter_size: 2", "type: 'LAMB'", "sync { mode: 'average' }",
        "sync { wire: 'float16' }", "sync { compression: 'powersgd' }"}) {
    EXPECT_FALSE(suits(more)) << more;
  }
}

}  // namespace
}  // namespace cafetiere
