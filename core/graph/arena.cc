// SPDX-License-Identifier: Apache-2.0
#include "core/graph/arena.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <unordered_map>

#include "core/graph/needed.h"
#include "core/model/blob.h"
#include "core/model/weights.h"

namespace cafetiere {
namespace {

const Node* find_node(const Graph& graph, const std::string& name) {
  for (const Node& node : graph.nodes()) {
    if (node.param.name() == name) return &node;
  }
  return nullptr;
}

/// HDF5 files omit a blob that another layer owns; it is read as a blob without a shape.
bool is_stored(const caffe::BlobProto& blob) {
  return blob.has_shape() || blob.has_num() || blob.has_channels() || blob.has_height() ||
         blob.has_width() || value_count(blob) > 0;
}

Status check_count(const Graph& graph, const Node& node, const caffe::LayerParameter& source) {
  const int have = source.blobs_size(), need = int(node.params.size());
  bool fits = have <= need;
  for (int i = 0; i < need && fits; ++i) {
    const Param& p = graph.params()[size_t(node.params[size_t(i)])];
    const bool owned = p.layer == node.param.name() && p.index == i;
    fits = !owned || (i < have && is_stored(source.blobs(i)));
  }
  if (fits) return {};
  return invalid_argument(
      fmt::format("Incompatible number of blobs for layer {}: the weights have {}, the net {}; use "
                  "the net that "
                  "they were trained with, or rename the layer to learn it from scratch",
                  source.name(), have, need));
}

/// Whether each parameter is among the weights, by whichever of the layers that share it.
std::vector<bool> given_params(const Graph& graph, const caffe::NetParameter& weights) {
  std::vector<bool> given(graph.params().size());
  for (const caffe::LayerParameter& layer : weights.layer()) {
    const Node* node = find_node(graph, layer.name());
    if (!node) continue;
    const int blobs = std::min(layer.blobs_size(), int(node->params.size()));
    for (int i = 0; i < blobs; ++i) {
      if (is_stored(layer.blobs(i))) given[size_t(node->params[size_t(i)])] = true;
    }
  }
  return given;
}

/// Copies a blob, by the indices of layer and blob, to its destination.
using ReadBlob =
    std::function<Status(int layer, int blob, const Shape& shape, std::span<float> out)>;

/// `weights` may lack the values, which `read` provides.
Status load_layers(const Graph& graph, const caffe::NetParameter& weights, const ReadBlob& read,
                   std::span<float> arena, std::vector<std::string>* ignored) {
  std::unordered_map<std::string_view, const Node*> nodes;
  for (const Node& node : graph.nodes()) nodes.emplace(node.param.name(), &node);
  for (int layer = 0; layer < weights.layer_size(); ++layer) {
    const caffe::LayerParameter& source = weights.layer(layer);
    const auto found = nodes.find(source.name());
    const Node* node = found == nodes.end() ? nullptr : found->second;
    if (!node) {
      if (ignored) ignored->push_back(source.name());
      continue;
    }
    CFT_TRY(check_count(graph, *node, source));
    for (int i = 0; i < source.blobs_size(); ++i) {
      if (!is_stored(source.blobs(i))) continue;
      const Param& p = graph.params()[size_t(node->params[size_t(i)])];
      CFT_TRY(
          read(layer, i, node->param_shapes[size_t(i)],
               arena.subspan(size_t(p.offset), size_t(p.shape.count())))
              .with_context(fmt::format("Cannot copy param {} weights from layer '{}' (rename the "
                                        "layer to learn it from scratch)",
                                        i, source.name())));
    }
  }
  return {};
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
  const auto read = [&](int layer, int blob, const Shape& shape, std::span<float> out) {
    return blob_to_floats(weights.layer(layer).blobs(blob), shape, out);
  };
  return load_layers(graph, weights, read, arena, ignored);
}

Status load_weights(const Graph& graph, const StoredWeights& weights, std::span<float> arena,
                    std::vector<std::string>* ignored) {
  const auto read = [&](int layer, int blob, const Shape& shape, std::span<float> out) {
    return weights.read(layer, blob, shape, out);
  };
  return load_layers(graph, weights.net(), read, arena, ignored);
}

Status begin_with_weights(const Graph& graph, const StoredWeights& weights, std::span<float> arena,
                          const Logger& log) {
  std::vector<std::string> ignored;
  CFT_TRY(load_weights(graph, weights, arena, &ignored));
  for (const std::string& name : ignored) log.notice("Ignoring source layer {}", name);
  std::vector<std::string_view> layers;
  for (const caffe::LayerParameter& layer : weights.net().layer()) {
    if (layer.blobs_size() > 0) layers.push_back(layer.name());
  }
  const std::vector<bool> given = given_params(graph, weights.net());
  const bool is_used = std::ranges::find(given, true) != given.end();
  if (is_used || layers.empty() || given.empty()) return {};
  return invalid_argument(fmt::format(
      "the net has none of the layers whose weights are given ({}): give weights of this net, or "
      "name its layers as there",
      fmt::join(layers, ", ")));
}

Status check_complete(const Graph& graph, const caffe::NetParameter& weights,
                      std::span<const int> blobs) {
  const std::vector<bool> given = given_params(graph, weights), needed = needed_nodes(graph, blobs);
  for (size_t n = 0; n < needed.size(); ++n) {
    const Node& node = graph.nodes()[n];
    const auto is_given = [&](int param) { return given[size_t(param)]; };
    if (!needed[n] || std::ranges::all_of(node.params, is_given)) continue;
    return invalid_argument("there are no weights for layer '" + node.param.name() +
                            "'; give the file that was saved of this net");
  }
  return {};
}

size_t binary_bytes(const Graph& graph, bool diffs) {
  constexpr size_t kBlobHead = 128;  // upper bound: shape and sizes
  size_t bytes = graph.name().size() + kBlobHead, floats = 0;
  for (const Node& node : graph.nodes()) {
    bytes += node.param.ByteSizeLong() + kBlobHead * (1 + node.params.size());
    for (const int id : node.params) floats += size_t(graph.params()[size_t(id)].shape.count());
  }
  return bytes + floats * (diffs ? 2 : 1) * sizeof(float);
}

caffe::NetParameter to_weights(const Graph& graph, std::span<const float> arena,
                               std::span<const float> diffs) {
  caffe::NetParameter net;
  net.set_name(graph.name());
  for (const Node& node : graph.nodes()) {
    caffe::LayerParameter* layer = net.add_layer();
    *layer = node.param;
    layer->clear_blobs();
    if (layer->top_size() == 1 && layer->top(0) == kAnonymousTop) layer->clear_top();
    for (size_t i = 0; i < node.params.size(); ++i) {
      const Param& p = graph.params()[size_t(node.params[i])];
      const size_t offset = size_t(p.offset), count = size_t(p.shape.count());
      caffe::BlobProto* blob = layer->add_blobs();
      floats_to_blob(arena.subspan(offset, count), node.param_shapes[i], blob);
      if (diffs.empty()) continue;
      const std::span<const float> diff = diffs.subspan(offset, count);
      blob->mutable_diff()->Add(diff.begin(), diff.end());
    }
  }
  return net;
}

Status write_hdf5_weights(const Graph& graph, std::span<const float> arena,
                          std::span<const float> diffs, const std::string& path) {
  return replace_hdf5(path, [&](Hdf5Writer* file) -> Status {
    CFT_ASSIGN(Hdf5Weights weights, Hdf5Weights::begin(file));
    for (const Node& node : graph.nodes()) {
      CFT_TRY(weights.layer(node.param.name()));
      for (int i = 0; i < int(node.params.size()); ++i) {
        const Param& p = graph.params()[size_t(node.params[size_t(i)])];
        const size_t offset = size_t(p.offset), count = size_t(p.shape.count());
        CFT_TRY(
            weights.blob(i, i < node.param.param_size() ? node.param.param(i).name() : "",
                         node.param_shapes[size_t(i)], arena.subspan(offset, count),
                         diffs.empty() ? std::span<const float>() : diffs.subspan(offset, count)));
      }
    }
    return {};
  });
}

Result<std::vector<float*>> shared_params(const Graph& graph, const Graph& owner, float* arena,
                                          float* own) {
  std::vector<float*> pointers;
  for (const Param& p : graph.params()) {
    const Node* node = find_node(owner, p.layer);
    if (!node) {
      pointers.push_back(own + p.offset);
      continue;
    }
    const bool there = size_t(p.index) < node->params.size();
    const Param* from = there ? &owner.params()[size_t(node->params[size_t(p.index)])] : nullptr;
    if (!from || !(from->shape == p.shape)) {
      return invalid_argument(fmt::format(
          "layer '{}', blob {} of net '{}': its shape is {}, but the training net has {}", p.layer,
          p.index, graph.name(), p.shape.str(), from ? from->shape.str() : "no such blob"));
    }
    pointers.push_back(arena + from->offset);
  }
  return pointers;
}

bool covers(const Graph& owner, const Graph& graph) {
  return std::ranges::all_of(graph.params(),
                             [&](const Param& p) { return find_node(owner, p.layer) != nullptr; });
}

}  // namespace cafetiere
