// SPDX-License-Identifier: Apache-2.0
#include "fuzz/small_net.h"

#include <algorithm>
#include <vector>

#include "core/layers/registry.h"
#include "core/plan/plan.h"

namespace cafetiere::fuzz {
namespace {

constexpr int64_t kMaxFloats = 4096;  // of blobs and of parameters, so that a run takes no time
constexpr size_t kMaxNodes = 32;

constexpr const char* kLeNet = R"(
  name: "small LeNet"
  layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 1 dim: 6 dim: 6 } } }
  layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
          convolution_param { num_output: 2 kernel_size: 3 } }
  layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
          pooling_param { kernel_size: 2 stride: 2 } }
  layer { name: "norm1" type: "BatchNorm" bottom: "pool1" top: "norm1" }
  layer { name: "ip1" type: "InnerProduct" bottom: "norm1" top: "ip1"
          inner_product_param { num_output: 5 } }
  layer { name: "prob" type: "Softmax" bottom: "ip1" top: "prob" }
)";

int64_t floats_of(const std::vector<Shape>& shapes) {
  int64_t floats = 0;
  for (const Shape& shape : shapes) floats += shape.count();
  return floats;
}

bool is_small(const Graph& graph) {
  if (graph.nodes().size() > kMaxNodes || graph.arena_size() > kMaxFloats) return false;
  const auto shapes = graph.infer(0);
  return shapes.ok() && floats_of(*shapes) <= kMaxFloats;
}

bool writes_files(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node& node) {
    return std::string_view(node.type->name) == "HDF5Output";
  });
}

}  // namespace

Result<Graph> build_graph(const NetText& net, caffe::Phase phase) {
  caffe::NetState state;
  state.set_phase(phase);
  return Graph::build(net, state, {.types = layer_types(), .fed = {}});
}

Result<Graph> small_lenet() {
  CFT_ASSIGN(const NetText net, parse_net(kLeNet, "lenet"));
  return build_graph(net, caffe::TEST);
}

void try_out(const Graph& graph) {
  if (!is_small(graph) || writes_files(graph)) return;
  const bool backward =
      std::ranges::any_of(graph.nodes(), [](const Node& node) { return node.needs_backward; });
  std::vector<float> data(size_t(graph.arena_size()), 0.5F), diff(data.size());
  const std::unique_ptr<Device> device = make_cpu_device();
  auto plan = Plan::compile(graph, *device, param_pointers(graph, data.data(), diff.data()),
                            {.backward = backward, .outputs = {}});
  if (!plan.ok()) return;
  ThreadPool pool(1);
  const Status ran = (*plan)->run(pool, {});
  (void)ran;  // an error is as good as a result
}

}  // namespace cafetiere::fuzz
