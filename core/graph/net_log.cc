// SPDX-License-Identifier: Apache-2.0
#include "core/graph/net_log.h"

#include "core/graph/phase_rules.h"

namespace cafetiere {
namespace {

void log_text(const NetText& net, const caffe::NetState& state, const Logger& log) {
  std::vector<std::string> notes;
  Result<caffe::NetParameter> filtered = filter_net(net.param, state, nullptr, &notes);
  for (const std::string& note : notes) log.info("{}", note);
  if (!filtered.ok()) return;
  for (caffe::LayerParameter& layer : *filtered->mutable_layer()) layer.clear_blobs();
  *filtered->mutable_state() = state;
  log.info("Initializing net from parameters: \n{}", to_text(*filtered));
}

void log_wires(const Node& node, const Logger& log) {
  const caffe::LayerParameter& p = node.param;
  log.info("Creating layer {}", p.name());
  log.info("Creating Layer {}", p.name());
  for (const std::string& bottom : p.bottom()) log.info("{} <- {}", p.name(), bottom);
  for (int i = 0; i < p.top_size(); ++i) {
    const bool in_place = i < p.bottom_size() && p.bottom(i) == p.top(i);
    log.info("{} -> {}{}", p.name(), p.top(i), in_place ? " (in-place)" : "");
  }
}

/// Parameters that another layer owns.
void log_shared(const Node& node, const Graph& graph, const Logger& log) {
  for (int id : node.params) {
    const Param& p = graph.params()[size_t(id)];
    if (p.layer == node.param.name()) continue;
    log.info("Sharing parameters '{}' owned by layer '{}', param index {}", p.shared_name, p.layer,
             p.index);
  }
}

}  // namespace

void log_net(const NetText& net, const caffe::NetState& state, const Graph& graph,
             const Logger& log) {
  for (const std::string& warning : net.warnings) log.warning("{}", warning);
  log_text(net, state, log);
  const Result<std::vector<Shape>> shapes = graph.infer(0);
  if (!shapes.ok()) return;
  int64_t floats = 0;
  for (const Node& node : graph.nodes()) {
    log_wires(node, log);
    log.info("Setting up {}", node.param.name());
    for (size_t i = 0; i < node.tops.size(); ++i) {
      const Shape& shape = (*shapes)[size_t(node.tops[i])];
      log.info("Top shape: {}", shape.str());
      if (node.loss_weights[i] != 0) log.info("    with loss weight {:g}", node.loss_weights[i]);
      floats += shape.count();
    }
    log.info("Memory required for data: {}", floats * int64_t(sizeof(float)));
    log_shared(node, graph, log);
  }
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    log.info("{} {} backward computation.", node->param.name(),
             node->needs_backward ? "needs" : "does not need");
  }
  for (int blob : graph.outputs()) {
    log.info("This network produces output {}", graph.blob_names()[size_t(blob)]);
  }
  log.info("Network initialization done.");
}

}  // namespace cafetiere
