// SPDX-License-Identifier: Apache-2.0
// Every layer type that both libraries have: the same nets, parameters, inputs and gradients give the
// same tops and gradients, on each device.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/layers/registry.h"
#include "tests/layers/harness.h"
#include "tests/reference/cases.h"
#include "tests/reference/reference.h"

namespace cafetiere {
namespace {

using parity::Arrays;

constexpr double kBound = 1e-5;

/// Which arrays belong to a pass forward.
bool is_forward(const std::string& name) {
  return name.starts_with("top_") || name.starts_with("param_");
}

std::vector<float> copy(const float* data, int64_t count) { return {data, data + count}; }

/// Fills a net with what a request holds.
void copy_in(const Arrays& request, TestNet& net, const Plan& plan) {
  for (size_t i = 0; i < net.graph().params().size(); ++i) {
    std::ranges::copy(request.at(fmt::format("param_{}", i)), net.param(i).begin());
  }
  for (const Plan::Blob& b : plan.inputs()) std::ranges::copy(request.at("in_" + b.name), b.data);
  for (const Plan::Blob& b : plan.outputs()) {
    const auto found = request.find("topdiff_" + b.name);
    if (found != request.end()) std::ranges::copy(found->second, b.diff);
  }
}

/// A parameter after the pass: in training, statistics take in what was observed.
std::vector<float> after_pass(TestNet& net, size_t i, caffe::Phase phase) {
  const Param& p = net.graph().params()[i];
  std::vector<float> values = copy(net.param(i).data(), p.shape.count());
  if (p.kind == ParamKind::kLearned || phase == caffe::TEST) return values;
  for (size_t k = 0; k < values.size(); ++k) {
    values[k] = p.fraction * values[k] + net.param_diff(i)[k];
  }
  return values;
}

/// What our library answers to a request.
Arrays answer(TestNet& net, const ParityNet& drawn, const Arrays& request, Device& device) {
  auto plan = net.plan(device, 0, drawn.backward);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  if (!plan.ok()) return {};
  copy_in(request, net, **plan);
  ThreadPool pool(1);
  EXPECT_TRUE((*plan)->run(pool, {}).ok());
  Arrays out;
  for (const Plan::Blob& b : (*plan)->outputs()) {
    out["top_" + b.name] = copy(b.data, b.shape.count());
  }
  for (const Plan::Blob& b : (*plan)->input_diffs()) {
    out["indiff_" + b.name] = copy(b.data, b.shape.count());
  }
  for (size_t i = 0; i < net.graph().params().size(); ++i) {
    const Param& p = net.graph().params()[i];
    out[fmt::format("param_{}", i)] = after_pass(net, i, drawn.phase);
    if (drawn.backward && p.kind == ParamKind::kLearned) {
      out[fmt::format("pdiff_{}", i)] = copy(net.param_diff(i).data(), p.shape.count());
    }
  }
  return out;
}

/// Parameters, inputs and the outputs' gradients.
Arrays draw_request(TestNet& net, const ParityNet& drawn, Draw& draw) {
  Arrays request;
  for (size_t i = 0; i < net.graph().params().size(); ++i) {
    const Param& p = net.graph().params()[i];
    const bool learned = p.kind == ParamKind::kLearned;
    request[fmt::format("param_{}", i)] =
        draw.values(learned ? "weight" : "prob", size_t(p.shape.count()), 1);
  }
  const auto ref = make_ref_device();
  auto plan = net.plan(*ref, 0, drawn.backward);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  if (!plan.ok()) return request;
  for (const Plan::Blob& b : (*plan)->inputs()) {
    request["in_" + b.name] = draw.values(b.name, size_t(b.shape.count()), drawn.classes);
  }
  for (const Plan::Blob& b : (*plan)->outputs()) {
    if (drawn.backward) {
      request["topdiff_" + b.name] = draw.values("diff", size_t(b.shape.count()), 1);
    }
  }
  return request;
}

/// What the reference is to be asked: like the harness, it sends gradients down to the inputs unless
/// the net says where they go.
std::string reference_text(const ParityNet& drawn) {
  const bool forced = drawn.backward && drawn.text.find("propagate_down") == std::string::npos;
  return fmt::format("state {{ phase: {} }} force_backward: {}\n{}",
                     drawn.phase == caffe::TRAIN ? "TRAIN" : "TEST", forced, drawn.text);
}

class ReferenceLayer : public ::testing::TestWithParam<ParityCase> {
 protected:
  void SetUp() override {
    if (!reference_is_there()) GTEST_SKIP() << "tools/reference_caffe has not been run";
  }

  /// Draws all nets of a type and has the reference run them.
  void ask() {
    std::vector<std::string> arguments = {"layers", folder_.path("")};
    Draw draw(20260101);
    for (int i = 0; i < GetParam().draws; ++i) {
      nets_.push_back(GetParam().draw(draw));
      auto built = TestNet::build(nets_.back().text, nets_.back().phase);
      ASSERT_TRUE(built.ok()) << built.status().message() << "\n" << nets_.back().text;
      requests_.push_back(draw_request(**built, nets_.back(), draw));
      const std::string name = std::to_string(i);
      write_text(folder_.path(name) + ".prototxt", reference_text(nets_.back()));
      parity::write_arrays(folder_.path(name) + ".in", requests_.back());
      arguments.push_back(name);
    }
    ASSERT_EQ(run_reference(arguments), "");
  }

  void compare(size_t i, Device& device) {
    SCOPED_TRACE(fmt::format("draw {} on {}:\n{}", i, device.name(), nets_[i].text));
    auto built = TestNet::build(nets_[i].text, nets_[i].phase);
    ASSERT_TRUE(built.ok()) << built.status().message();
    const Arrays ours = answer(**built, nets_[i], requests_[i], device);
    const Arrays theirs = parity::read_arrays(folder_.path(std::to_string(i)) + ".out");
    for (const auto& [name, expected] : theirs) {
      if (name.starts_with("indiff_") && !name.starts_with("indiff_x")) continue;
      if (name.starts_with("pdiff_") && !ours.contains(name)) continue;  // of a statistic
      ASSERT_TRUE(ours.contains(name)) << name;
      const double difference = relative_difference(ours.at(name), expected);
      EXPECT_LE(difference, kBound) << name;
      double& worst = is_forward(name) ? forward_ : backward_;
      worst = std::max(worst, difference);
    }
  }

  TempDir folder_;
  std::vector<ParityNet> nets_;
  std::vector<Arrays> requests_;
  double forward_ = 0, backward_ = -1;  ///< the worst differences; -1: there is no gradient
};

TEST_P(ReferenceLayer, GivesTheSame) {
  ask();
  if (HasFatalFailure()) return;
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    for (size_t i = 0; i < nets_.size(); ++i) compare(i, *device);
  }
  RecordProperty("draws", GetParam().draws);
  RecordProperty("forward", fmt::format("{:.1e}", forward_));
  RecordProperty("backward", backward_ < 0 ? "" : fmt::format("{:.1e}", backward_));
}

std::string type_of(const ::testing::TestParamInfo<ParityCase>& info) { return info.param.type; }

INSTANTIATE_TEST_SUITE_P(Vision, ReferenceLayer, ::testing::ValuesIn(vision_cases()), type_of);
INSTANTIATE_TEST_SUITE_P(Common, ReferenceLayer, ::testing::ValuesIn(common_cases()), type_of);
INSTANTIATE_TEST_SUITE_P(Elements, ReferenceLayer, ::testing::ValuesIn(element_cases()), type_of);
INSTANTIATE_TEST_SUITE_P(Losses, ReferenceLayer, ::testing::ValuesIn(loss_cases()), type_of);

}  // namespace
}  // namespace cafetiere
