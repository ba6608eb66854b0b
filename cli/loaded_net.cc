// SPDX-License-Identifier: Apache-2.0
#include "cli/loaded_net.h"

#include <algorithm>

#include "core/device/precision.h"
#include "core/graph/arena.h"
#include "core/graph/net_log.h"
#include "core/layers/registry.h"
#include "core/model/weights.h"

namespace cafetiere {
namespace {

constexpr uint64_t kSeed = 1;

}  // namespace

Result<std::unique_ptr<LoadedNet>> LoadedNet::load(const std::string& path,
                                                   const caffe::NetState& state, const Logger& log,
                                                   bool force_backward, const TopShapes* shapes) {
  NetChoice choice;
  CFT_ASSIGN(choice.net, read_net(path));
  if (force_backward) choice.net.param.set_force_backward(true);
  choice.state = choice.net.param.state();
  choice.state.MergeFrom(state);
  return load(choice, log, shapes);
}

Result<std::unique_ptr<LoadedNet>> LoadedNet::load(const NetChoice& choice, const Logger& log,
                                                   const TopShapes* shapes) {
  auto net = std::make_unique<LoadedNet>();
  for (const std::string& note : choice.net.notes) log.info("{}", note);
  CFT_ASSIGN(net->feeds,
             shapes ? open_or_state(choice, *shapes, kSeed, log) : open_feeds(choice, kSeed, log));
  CFT_ASSIGN(net->graph, Graph::build(choice.net, choice.state,
                                      {.types = layer_types(), .fed = net->feeds.shapes}));
  log_net(choice.net, choice.state, net->graph, log);
  net->device = make_cpu_device();
  return net;
}

Status LoadedNet::use_precision(const std::string& name) {
  CFT_ASSIGN(const Precision precision, precision_of(name));
  device = make_cpu_device(precision);
  return {};
}

Status LoadedNet::fill_parameters() {
  if (!weights.empty()) return {};
  weights.resize(size_t(graph.arena_size()));
  gradients.resize(weights.size());
  Random random{uint32_t(kSeed)};
  return init_params(graph, random, weights);
}

Status LoadedNet::load_weights(const std::string& file, std::span<const int> asked,
                               const Logger& log) {
  CFT_ASSIGN(const StoredWeights from, StoredWeights::open(file));
  CFT_TRY(fill_parameters());
  CFT_TRY(begin_with_weights(graph, from, weights, log).with_context(file));
  if (const Status lacks = check_complete(graph, from.net(), asked); !lacks.ok()) {
    log.warning("{}: {}; here its fillers' values are used", file, lacks.message());
  }
  return {};
}

Result<PlanOutline> LoadedNet::outline(const PlanOptions& options) const {
  return PlanOutline::make(graph, *device, options);
}

Result<std::unique_ptr<Plan>> LoadedNet::compile(const PlanOptions& options) {
  CFT_TRY(fill_parameters());
  return Plan::compile(graph, *device, param_pointers(graph, weights.data(), gradients.data()),
                       options);
}

bool LoadedNet::has_loss() const {
  for (const Node& node : graph.nodes()) {
    const auto counts = [](float weight) { return weight != 0; };
    if (std::any_of(node.loss_weights.begin(), node.loss_weights.end(), counts)) return true;
  }
  return false;
}

Status LoadedNet::fill(const Feed& feed, int64_t sub_step, Plan& plan) const {
  std::vector<float*> tops;
  for (const Plan::Blob& input : plan.inputs()) {
    if (input.layer == feed.layer) tops.push_back(input.data);
  }
  return feed.source->fill(0, sub_step, tops);
}

std::string layer_of(const std::string& step, const Graph& graph) {
  std::string longest;
  for (const Node& node : graph.nodes()) {
    const std::string& name = node.param.name();
    if (step.starts_with(name + " ") && name.size() > longest.size()) longest = name;
  }
  return longest;
}

}  // namespace cafetiere
