// SPDX-License-Identifier: Apache-2.0
#include "tests/layers/harness.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "core/layers/registry.h"
#include "core/plan/net.h"

namespace cafetiere {
namespace {

/// Shuffled, evenly spaced values in [-1.5, 1.5], none near 0: no ties for a maximum and no kink
/// within reach of a small difference.
void fill_grid(const std::string& name, std::span<float> out, float scale = 1) {
  const double count = double(out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = scale * float(-1.5 + 3 * (double(i) + 0.75) / count);
  }
  std::seed_seq seed(name.begin(), name.end());
  std::mt19937 random(seed);
  std::shuffle(out.begin(), out.end(), random);
}

std::span<float> all(float* data, const Shape& shape) { return {data, size_t(shape.count())}; }
std::vector<float> copy(std::span<const float> values) { return {values.begin(), values.end()}; }

void fill_input(const LayerCase& c, const std::string& name, std::span<float> values) {
  fill_grid(name, values);
  if (name != "label") return;
  for (float& v : values) v = std::floor((v + 1.5F) / 3 * float(c.labels));
}

void fill_inputs(const LayerCase& c, Plan& plan) {
  for (const Plan::Blob& blob : plan.inputs()) {
    fill_input(c, blob.name, all(blob.data, blob.shape));
  }
}

/// The gradients of the outputs, which are also the weights of the function that is differentiated.
void fill_output_diffs(Plan& plan) {
  for (const Plan::Blob& blob : plan.outputs()) {
    if (blob.name == "mask") continue;
    fill_grid(blob.name + " diff", all(blob.diff, blob.shape));
  }
}

/// Learned parameters are anything, statistics positive; gradients start as NaN, so that one which
/// is added to instead of replaced shows.
void fill_params(TestNet& net) {
  for (size_t i = 0; i < net.graph().params().size(); ++i) {
    const Param& p = net.graph().params()[i];
    fill_grid(fmt::format("{}[{}]", p.layer, p.index), net.param(i), 0.5F);
    const bool learned = p.kind == ParamKind::kLearned;
    std::ranges::fill(net.param_diff(i), learned ? std::numeric_limits<float>::quiet_NaN() : 0);
    if (learned) continue;
    for (float& v : net.param(i)) v = std::fabs(v) + 0.5F;
  }
}

Figures tops_of(const Plan& plan) {
  Figures figures;
  for (const Plan::Blob& b : plan.outputs()) figures[b.name] = copy(all(b.data, b.shape));
  return figures;
}

Figures figures_of(TestNet& net, const Plan& plan) {
  Figures figures = tops_of(plan);
  for (const Plan::Blob& b : plan.input_diffs()) {
    figures[b.name + " diff"] = copy(all(b.data, b.shape));
  }
  for (size_t i = 0; i < net.graph().params().size(); ++i) {
    const Param& p = net.graph().params()[i];
    figures[fmt::format("{}[{}] diff", p.layer, p.index)] = copy(net.param_diff(i));
  }
  return figures;
}

/// Differentiates sum(weights * outputs) by central differences.
class Differences {
 public:
  Differences(const LayerCase& c, TestNet& net, Plan& plan) : net_(net), plan_(plan) {
    fill_params(net);
    fill_inputs(c, plan);
    fill_output_diffs(plan);
    EXPECT_TRUE(plan.run(pool_, {}).ok());
    figures_ = figures_of(net, plan);
  }

  void check_all() {
    for (const Plan::Blob& blob : plan_.inputs()) {
      const auto found = figures_.find(blob.name + " diff");
      if (found == figures_.end() || blob.name == "label") continue;
      check(all(blob.data, blob.shape), found->second, found->first);
    }
    for (size_t i = 0; i < net_.graph().params().size(); ++i) {
      const Param& p = net_.graph().params()[i];
      if (p.kind != ParamKind::kLearned) continue;
      const std::string name = fmt::format("{}[{}] diff", p.layer, p.index);
      check(net_.param(i), figures_[name], name);
    }
  }

 private:
  double value() {
    EXPECT_TRUE(plan_.run_forward(pool_, {}).ok());
    double sum = 0;
    for (const Plan::Blob& blob : plan_.outputs()) {
      for (int64_t i = 0; i < blob.shape.count(); ++i) {
        sum += double(blob.data[i]) * double(blob.diff[i]);
      }
    }
    return sum;
  }

  void check(std::span<float> values, const std::vector<float>& gradient, const std::string& what) {
    constexpr float kStep = 4e-3F;
    double largest = 1;
    for (float g : gradient) largest = std::max(largest, std::fabs(double(g)));
    const size_t stride = std::max<size_t>(1, values.size() / 61);
    for (size_t i = 0; i < values.size(); i += stride) {
      const float kept = values[i];
      values[i] = kept + kStep;
      const double above = value();
      values[i] = kept - kStep;
      const double below = value();
      values[i] = kept;
      ASSERT_NEAR(gradient[i], (above - below) / (2 * double(kStep)), 2e-3 * largest)
          << what << "[" << i << "] against differences";
    }
  }

  TestNet& net_;
  Plan& plan_;
  ThreadPool pool_{1};
  Figures figures_;
};

void expect_figures_close(const Figures& actual, const Figures& expected, double relative) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, values] : expected) {
    ASSERT_TRUE(actual.contains(name)) << name;
    expect_close(actual.at(name), values, relative, name);
  }
}

/// Everything that must hold at one batch size.
void check_batch(const LayerCase& c, int64_t batch) {
  const auto ref = make_ref_device(), cpu = make_cpu_device();
  const Figures expected = random_figures(c, *ref, batch, 1, 1);
  const Figures once = random_figures(c, *cpu, batch, 1, 1);
  if (::testing::Test::HasFatalFailure()) return;
  expect_figures_close(once, expected, 1e-4);
  EXPECT_EQ(random_figures(c, *cpu, batch, 2, 1), once) << "two threads give other bits than one";
  const Figures twice = random_figures(c, *cpu, batch, 1, 2);
  expect_figures_close(twice, random_figures(c, *ref, batch, 1, 2), 1e-4);
}

Result<Graph> build_graph(const std::string& layers, caffe::Phase phase) {
  CFT_ASSIGN(NetText net, parse_net(layers, "net"));
  net.param.set_force_backward(!std::ranges::any_of(
      net.param.layer(), [](const auto& layer) { return layer.propagate_down_size() > 0; }));
  caffe::NetState state;
  state.set_phase(phase);
  return Graph::build(net, state, {.types = layer_types(), .fed = {}});
}

/// What random_figures() gives, from a net that is run layer by layer. What statistics observe goes
/// into them there; it is left out.
Figures open_figures(const LayerCase& c, TestNet& values) {
  auto graph = build_graph(c.layers, c.phase);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  if (!graph.ok()) return {};
  auto made = Net::create(*std::move(graph), {.threads = 1, .seed = 0});
  EXPECT_TRUE(made.ok()) << made.status().message();
  if (!made.ok()) return {};
  Net& net = **made;
  fill_params(values);
  for (size_t i = 0; i < net.params().size(); ++i) {
    std::ranges::copy(values.param(i), net.params()[i].data.get());
  }
  std::set<std::string> inputs, outputs;
  for (const Node& node : net.graph().nodes()) {
    if (node.type->source) inputs.insert(node.param.top().begin(), node.param.top().end());
  }
  for (int id : net.graph().outputs()) outputs.insert(net.graph().blob_names()[size_t(id)]);
  for (const Net::Blob& blob : net.blobs()) {
    if (inputs.contains(blob.name)) fill_input(c, blob.name, all(blob.data.get(), blob.shape));
    if (!outputs.contains(blob.name)) continue;
    const std::span<float> diff = all(blob.diff.get(), blob.shape);
    std::ranges::fill(diff, 0.F);
    if (blob.name != "mask") fill_grid(blob.name + " diff", diff);
  }
  const int last = int(net.graph().nodes().size()) - 1;
  const auto loss = net.forward(0, last);
  EXPECT_TRUE(loss.ok()) << loss.status().message();
  const Status backward = net.backward(last, 0);
  EXPECT_TRUE(backward.ok()) << backward.message();
  Figures figures;
  for (const Net::Blob& blob : net.blobs()) {
    if (outputs.contains(blob.name)) figures[blob.name] = copy(all(blob.data.get(), blob.shape));
    if (!inputs.contains(blob.name)) continue;
    figures[blob.name + " diff"] = copy(all(blob.diff.get(), blob.shape));
  }
  for (size_t i = 0; i < net.params().size(); ++i) {
    const Param& param = net.graph().params()[i];
    if (param.kind != ParamKind::kLearned || param.lr_mult == 0) continue;
    const Net::Blob& p = net.params()[i];
    figures[p.name + " diff"] = copy(all(p.diff.get(), p.shape));
  }
  return figures;
}

/// A net run layer by layer gives what a plan gives.
void check_open(const LayerCase& c, TestNet& net) {
  const auto cpu = make_cpu_device();
  const Figures expected = random_figures(c, *cpu, 0, 1, 1);
  const Figures open = open_figures(c, net);
  for (const auto& [name, values] : expected) {
    const auto found = open.find(name);
    if (found != open.end()) expect_close(found->second, values, 1e-4, name + " layer by layer");
  }
}

/// A second pass that accumulates doubles the gradients of learned parameters.
void check_accumulation(const LayerCase& c, TestNet& net) {
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    const Figures once = random_figures(c, *device, 0, 1, 1);
    const Figures twice = random_figures(c, *device, 0, 1, 2);
    for (const Param& p : net.graph().params()) {
      if (p.kind != ParamKind::kLearned) continue;
      const std::string name = fmt::format("{}[{}] diff", p.layer, p.index);
      std::vector<float> doubled = once.at(name);
      for (float& v : doubled) v *= 2;
      expect_close(twice.at(name), doubled, 1e-5, name + " of two passes on " + device->name());
    }
  }
}

}  // namespace

std::string layer(const std::string& type, const std::string& wires, const std::string& fields) {
  const bool named = wires.find("name:") != std::string::npos;
  return fmt::format("layer {{ {} type: '{}' {} {} }}\n", named ? "" : "name: 'L'", type, wires,
                     fields);
}

std::string input(const std::string& top, const std::vector<int64_t>& dims) {
  std::string shape;
  for (int64_t d : dims) shape += fmt::format("dim: {} ", d);
  return layer("Input", fmt::format("name: 'in_{0}' top: '{0}'", top),
               fmt::format("input_param {{ shape {{ {}}} }}", shape));
}

TestNet::TestNet(Graph graph)
    : graph_(std::move(graph)),
      data_(size_t(graph_.arena_size())),
      diff_(size_t(graph_.arena_size())) {}

Result<std::unique_ptr<TestNet>> TestNet::build(const std::string& layers, caffe::Phase phase) {
  CFT_ASSIGN(Graph graph, build_graph(layers, phase));
  return std::unique_ptr<TestNet>(new TestNet(std::move(graph)));
}

std::span<float> TestNet::part(std::vector<float>& arena, size_t i) {
  const Param& p = graph_.params()[i];
  return std::span(arena).subspan(size_t(p.offset), size_t(p.shape.count()));
}

Result<std::unique_ptr<Plan>> TestNet::plan(Device& device, int64_t batch, bool backward) {
  return Plan::compile(
      graph_, device, param_pointers(graph_, data_.data(), diff_.data()),
      {.batch = batch, .backward = backward, .feed_gradients = backward, .outputs = {}});
}

void check_layer(const LayerCase& c) {
  auto net = TestNet::build(c.layers, c.phase);
  ASSERT_TRUE(net.ok()) << net.status().message();
  check_batch(c, 0);
  for (int64_t batch : c.batches) {
    SCOPED_TRACE(fmt::format("batch {}", batch));
    check_batch(c, batch);
  }
  check_accumulation(c, **net);
  check_open(c, **net);
  if (!c.numeric || ::testing::Test::HasFatalFailure()) return;
  const auto ref = make_ref_device();
  auto plan = (*net)->plan(*ref, 0);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  Differences(c, **net, **plan).check_all();
}

Figures random_figures(const LayerCase& c, Device& device, int64_t batch, int threads, int passes) {
  auto net = TestNet::build(c.layers, c.phase);
  EXPECT_TRUE(net.ok()) << net.status().message();
  if (!net.ok()) return {};
  auto plan = (*net)->plan(device, batch);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  if (!plan.ok()) return {};
  fill_params(**net);
  fill_inputs(c, **plan);
  fill_output_diffs(**plan);
  ThreadPool pool(threads);
  EXPECT_TRUE((*plan)->run_forward(pool, {}).ok());
  const Figures forward = tops_of(**plan);
  for (int pass = 0; pass < passes; ++pass) {
    RunContext context;
    context.accumulate = pass > 0;
    EXPECT_TRUE((*plan)->run(pool, context).ok());
  }
  EXPECT_EQ(tops_of(**plan), forward) << "backward overwrites a top, or a pass leaves traces";
  return figures_of(**net, **plan);
}

Figures evaluate(const std::string& layers, const Figures& inputs, caffe::Phase phase,
                 Device& device, const RunContext& context) {
  auto net = TestNet::build(layers, phase);
  EXPECT_TRUE(net.ok()) << net.status().message();
  if (!net.ok()) return {};
  auto plan = (*net)->plan(device, 0);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  if (!plan.ok()) return {};
  for (size_t i = 0; i < (*net)->graph().params().size(); ++i) {
    std::ranges::fill((*net)->param(i), 0.5F);
  }
  for (const Plan::Blob& blob : (*plan)->inputs()) {
    const auto given = inputs.find(blob.name);
    if (given == inputs.end()) continue;
    EXPECT_EQ(given->second.size(), size_t(blob.shape.count())) << blob.name;
    std::ranges::copy(given->second, blob.data);
  }
  ThreadPool pool(1);
  EXPECT_TRUE((*plan)->run(pool, context).ok());
  return figures_of(**net, **plan);
}

void expect_close(const std::vector<float>& actual, const std::vector<float>& expected,
                  double relative, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double largest = 0;
  for (float e : expected) largest = std::max(largest, std::fabs(double(e)));
  for (size_t i = 0; i < expected.size(); ++i) {
    const double allowed = relative * (std::fabs(double(expected[i])) + largest / 10) + 1e-12;
    ASSERT_NEAR(actual[i], expected[i], allowed) << what << "[" << i << "]";
  }
}

std::string refusal(const std::string& layers, caffe::Phase phase) {
  auto net = TestNet::build(layers, phase);
  return net.ok() ? "" : net.status().message();
}

void expect_same_bits(const Figures& got, const Figures& expected) {
  ASSERT_EQ(got.size(), expected.size());
  const auto same = [](float a, float b) {
    return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
  };
  for (const auto& [name, values] : expected) {
    EXPECT_TRUE(std::ranges::equal(got.at(name), values, same)) << name;
  }
}

}  // namespace cafetiere
