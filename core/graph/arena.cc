#include "core/graph/arena.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/model/blob.h"

namespace cafetiere {
namespace {

const Node* find_node(const Graph& graph, const std::string& name) {
  for (const Node& node : graph.nodes()) {
    if (node.param.name() == name) return &node;
  }
  return nullptr;
}

}  // namespace

Status init_params(const Graph& graph, Random& random, std::span<float> arena) {
  for (const Param& p : graph.params()) {
    CFT_TRY(
        fill(p.filler, p.shape, arena.subspan(size_t(p.offset), size_t(p.shape.count())), random)
            .with_context(fmt::format("layer '{}', blob {}", p.layer, p.index)));
  }
  return {};
}

Status load_weights(const Graph& graph, const caffe::NetParameter& weights, std::span<float> arena,
                    std::vector<std::string>* ignored) {
  for (const caffe::LayerParameter& source : weights.layer()) {
    const Node* node = find_node(graph, source.name());
    if (!node) {
      if (ignored) ignored->push_back(source.name());
      continue;
    }
    if (source.blobs_size() != int(node->params.size())) {
      return invalid_argument(
          fmt::format("Incompatible number of blobs for layer {}: the weights have {}, the net {}",
                      source.name(), source.blobs_size(), node->params.size()));
    }
    for (int i = 0; i < source.blobs_size(); ++i) {
      const Param& p = graph.params()[size_t(node->params[size_t(i)])];
      CFT_TRY(blob_to_floats(source.blobs(i), p.shape,
                             arena.subspan(size_t(p.offset), size_t(p.shape.count())))
                  .with_context(fmt::format("Cannot copy param {} weights from layer '{}'; shape "
                                            "mismatch",
                                            i, source.name())));
    }
  }
  return {};
}

caffe::NetParameter to_weights(const Graph& graph, std::span<const float> arena) {
  caffe::NetParameter net;
  net.set_name(graph.name());
  for (const Node& node : graph.nodes()) {
    caffe::LayerParameter* layer = net.add_layer();
    *layer = node.param;
    layer->clear_blobs();
    for (int id : node.params) {
      const Param& p = graph.params()[size_t(id)];
      floats_to_blob(arena.subspan(size_t(p.offset), size_t(p.shape.count())), p.shape,
                     layer->add_blobs());
    }
  }
  return net;
}

Result<std::vector<float*>> shared_params(const Graph& graph, const Graph& owner, float* arena) {
  std::vector<float*> pointers;
  for (const Param& p : graph.params()) {
    const Node* node = find_node(owner, p.layer);
    if (!node || size_t(p.index) >= node->params.size()) {
      return invalid_argument(
          fmt::format("layer '{}' of net '{}' has weights, but the training net "
                      "has no such layer to take them from",
                      p.layer, graph.name()));
    }
    const Param& from = owner.params()[size_t(node->params[size_t(p.index)])];
    if (!(from.shape == p.shape)) {
      return invalid_argument(
          fmt::format("layer '{}', blob {}: shape {} here, {} in the training net", p.layer,
                      p.index, p.shape.str(), from.shape.str()));
    }
    pointers.push_back(arena + from.offset);
  }
  return pointers;
}

}  // namespace cafetiere
