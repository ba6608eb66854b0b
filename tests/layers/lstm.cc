// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/layers/recurrent_cell.h"
#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kFillers =
    "weight_filler { type: 'gaussian' std: 0.4 } bias_filler { type: 'gaussian' std: 0.4 }";

std::string recurrent(const std::string& fields) {
  return std::string("recurrent_param { ") + kFillers + " " + fields + " }";
}

/// x, cont ("label", which has no gradient) [, x_static], h_0 and c_0.
std::string exposed(int64_t steps, int64_t streams, bool fixed = false, int64_t inputs = 3,
                    int64_t units = 5) {
  return input("x", {steps, streams, inputs}) + input("label", {steps, streams}) +
         (fixed ? input("s", {streams, 4}) : "") + input("h", {1, streams, units}) +
         input("c", {1, streams, units}) +
         layer("LSTM",
               std::string("bottom: 'x' bottom: 'label' ") + (fixed ? "bottom: 's' " : "") +
                   "bottom: 'h' bottom: 'c' top: 'y' top: 'h_last' top: 'c_last'",
               recurrent("num_output: " + std::to_string(units) + " expose_hidden: true"));
}

/// Two streams; cont is 0 at the first step when `fresh`, else 1 throughout.
std::string carried(int64_t steps, bool fresh) {
  const auto constant = [](const std::string& top, int64_t rows, int value) {
    return layer("DummyData", "name: '" + top + "' top: '" + top + "'",
                 "dummy_data_param { shape { dim: " + std::to_string(rows) +
                     " dim: 2 } data_filler { value: " + std::to_string(value) + " } }");
  };
  const std::string cont =
      fresh ? constant("begin", 1, 0) + constant("go", steps - 1, 1) +
                  layer("Concat", "name: 'cat' bottom: 'begin' bottom: 'go' top: 'cont'",
                        "concat_param { axis: 0 }")
            : constant("cont", steps, 1);
  return input("x", {steps, 2, 3}) + cont +
         layer("LSTM", "bottom: 'x' bottom: 'cont' top: 'y'", recurrent("num_output: 4"));
}

// cont takes the values 0 and 1; the sizes of time and batch are those of the case.
TEST(LSTM, ExposedStates) {
  check_layer({.layers = exposed(4, 3), .batches = {}, .labels = 2});
  check_layer({.layers = exposed(1, 2), .batches = {}, .labels = 2});
  check_layer({.layers = exposed(3, 17, true), .batches = {}, .labels = 2});
}

// Fractions of a state may be kept too.
TEST(LSTM, ContOfAnyValue) { check_layer({.layers = exposed(3, 2), .batches = {}, .labels = 4}); }

// Without exposed states a run begins with zeros or with what the last one left.
TEST(LSTM, HiddenStates) {
  check_layer({.layers = carried(4, true), .batches = {}});
  check_layer(
      {.layers = input("x", {2, 3, 4}) + input("label", {2, 3}) +
                 layer("LSTM", "bottom: 'x' bottom: 'label' top: 'y'", recurrent("num_output: 3")),
       .labels = 1});
}

std::vector<StepInfo> training_steps(const std::string& layers) {
  const auto net = TestNet::build(layers, caffe::TRAIN).value();
  const auto device = make_cpu_device();
  return net->plan(*device, 0).value()->describe();
}

// With this many streams, the weights of the steps are laid out once for all of them.
TEST(LSTM, WideStreamsShareTheirWeightsLayout) {
  const std::string wide = exposed(3, 20, false, 8, 16);
  check_layer({.layers = wide, .batches = {}, .labels = 2, .numeric = false});
  int layouts = 0, products = 0;
  for (const StepInfo& step : training_steps(wide)) {
    layouts += step.name == "L[2] reorder";
    products += step.name == "L recurrent input" &&
                step.kernel.starts_with("brgemm NCS, lanes are outputs");
    EXPECT_THAT(step.name, ::testing::Not(HasSubstr("input reorder")));
  }
  EXPECT_EQ(layouts, 1);
  EXPECT_EQ(products, 3);
}

TEST(LSTM, GradientsOfWideStatesShareTheirWeightsLayout) {
  const std::string wide = exposed(4, 20, false, 8, 128);
  check_layer({.layers = wide, .batches = {}, .labels = 2, .numeric = false});
  int layouts = 0, products = 0;
  for (const StepInfo& step : training_steps(wide)) {
    layouts += step.kernel == "NCS to CNS";
    products += step.name == "L h diff" && step.kernel.starts_with("brgemm CNS");
  }
  EXPECT_EQ(layouts, 1);
  EXPECT_EQ(products, 4);
}

/// h of every step when `x` is run through a plan, `steps` at a time.
std::vector<float> run_in_pieces(Device& device, int64_t steps, const std::vector<float>& x,
                                 const std::vector<int>& shards = {0}) {
  auto net = TestNet::build(carried(steps, false), caffe::TEST);
  EXPECT_TRUE(net.ok()) << net.status().message();
  for (size_t i = 0; i < (*net)->graph().params().size(); ++i) {
    std::span<float> values = (*net)->param(i);
    for (size_t k = 0; k < values.size(); ++k) values[k] = 0.1F * float(int(k % 7) - 3);
  }
  auto plan = (*net)->plan(device, 0, false);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  ThreadPool pool(1);
  std::vector<float> y;
  for (size_t at = 0; at < x.size(); at += size_t(steps) * 6) {
    for (int shard : shards) {
      RunContext context;
      context.shard = shard;
      std::copy_n(x.begin() + ptrdiff_t(at), steps * 6, (*plan)->inputs()[0].data);
      EXPECT_TRUE((*plan)->run(pool, context).ok());
      const Plan::Blob& top = (*plan)->outputs()[0];
      if (shard == 0) y.insert(y.end(), top.data, top.data + top.shape.count());
    }
  }
  return y;
}

TEST(LSTM, GoesOnWhereTheLastRunEnded) {
  std::vector<float> x(size_t(6 * 2 * 3));
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(int(i * 5 % 11)) / 5 - 1;
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    const std::vector<float> whole = run_in_pieces(*device, 6, x);
    expect_close(run_in_pieces(*device, 2, x), whole, 1e-5, "pieces of two steps");
    expect_close(run_in_pieces(*device, 1, x), whole, 1e-5, "single steps");
    EXPECT_EQ(run_in_pieces(*device, 2, x, {0, 7}), run_in_pieces(*device, 2, x))
        << "another shard's batches are another stream";
  }
}

// A sequence that begins does not see the last one, whatever that left.
TEST(LSTM, BeginsAnew) {
  auto net = TestNet::build(carried(3, true), caffe::TEST);
  ASSERT_TRUE(net.ok()) << net.status().message();
  for (size_t i = 0; i < (*net)->graph().params().size(); ++i) {
    std::ranges::fill((*net)->param(i), 0.3F);
  }
  const auto device = make_cpu_device();
  auto plan = (*net)->plan(*device, 0, false);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const auto run = [&](float value) {
    ThreadPool pool(1);
    const Plan::Blob &x = (*plan)->inputs()[0], &y = (*plan)->outputs()[0];
    std::fill_n(x.data, x.shape.count(), value);
    EXPECT_TRUE((*plan)->run(pool, {}).ok());
    return std::vector<float>(y.data, y.data + y.shape.count());
  };
  const std::vector<float> first = run(1);
  run(std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(run(1), first);
}

// The order of blobs in a caffemodel.
TEST(LSTM, Blobs) {
  auto net = TestNet::build(exposed(2, 3, true), caffe::TEST);
  ASSERT_TRUE(net.ok()) << net.status().message();
  std::vector<Shape> shapes;
  for (const Param& p : (*net)->graph().params()) shapes.push_back(p.shape);
  EXPECT_EQ(shapes, (std::vector<Shape>{{20, 3}, {20}, {20, 4}, {20, 5}}));
}

TEST(LSTM, Refusals) {
  const auto refused = [](const Shape& cont, const std::string& wires, const std::string& fields) {
    return refusal(input("x", {4, 2, 3}) + input("cont", cont.dims()) + input("s", {3, 2}) +
                   input("h", {1, 2, 5}) +
                   layer("LSTM", "bottom: 'x' bottom: 'cont' " + wires, recurrent(fields)));
  };
  EXPECT_THAT(refused({4, 2}, "top: 'y'", ""),
              AllOf(HasSubstr("net:5: layer 'L'"), HasSubstr("num_output must be above 0")));
  EXPECT_THAT(refused({2, 4}, "top: 'y'", "num_output: 5"),
              AllOf(HasSubstr("cont must have shape 4 2 (8)"), HasSubstr("2 4 (8)")));
  EXPECT_THAT(refused({4, 2}, "bottom: 's' top: 'y'", "num_output: 5"),
              HasSubstr("one row for each of 2 streams"));
  EXPECT_THAT(refused({4, 2}, "top: 'y' top: 'h_last'", "num_output: 5"),
              HasSubstr("without expose_hidden"));
  EXPECT_THAT(refused({4, 2}, "bottom: 'h' top: 'y'", "num_output: 5 expose_hidden: true"),
              HasSubstr("with expose_hidden"));
  EXPECT_THAT(
      refused({4, 2}, "top: 'y' propagate_down: true propagate_down: true", "num_output: 5"),
      HasSubstr("cont has no gradient"));
}

/// All that the passes of a cell of 37 units leave.
template <class Cell>
std::vector<std::vector<float>> left_by(const CellPasses& passes, float cont) {
  constexpr int64_t kUnits = 37;
  std::mt19937 random(3);
  std::normal_distribution<float> number(0, 2);
  const auto drawn = [&](int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& v : values) v = number(random);
    return values;
  };
  const auto before = drawn(kUnits), dh = drawn(kUnits), dc = drawn(kUnits);
  auto gates = drawn(Cell::kGates * kUnits);
  std::vector<float> c(kUnits), h(kUnits), dgates(gates.size()), dc_before(kUnits);
  passes.forward(kUnits, cont, before.data(), gates.data(), c.data(), h.data());
  passes.backward(kUnits, cont, before.data(), gates.data(), c.data(), dh.data(), dc.data(),
                  dgates.data(), dc_before.data());
  return {gates, c, h, dgates, dc_before};
}

TEST(RecurrentCells, HaveTheSameBitsWithWideVectors) {
  if (!has_wide_vectors(instruction_set())) GTEST_SKIP() << "needs AVX-512";
  for (const float cont : {0.F, 1.F}) {
    EXPECT_EQ(left_by<LstmCell>(wide_passes<LstmCell>(), cont),
              left_by<LstmCell>(plain_passes<LstmCell>(), cont));
    EXPECT_EQ(left_by<TanhCell>(wide_passes<TanhCell>(), cont),
              left_by<TanhCell>(plain_passes<TanhCell>(), cont));
  }
}

}  // namespace
}  // namespace cafetiere
