// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/graph/arena.h"
#include "core/model/file.h"
#include "core/onnx/families.h"
#include "core/onnx/whole_layer.h"

namespace cafetiere {
namespace {

constexpr int kOpset = 17;
constexpr int kFileVersion = 8;  // the file format that came with this opset

class Export {
 public:
  Export(const Graph& graph, std::span<const float> arena, onnx::GraphProto* out)
      : graph_(graph),
        arena_(arena),
        out_(out),
        names_(blob_names(graph)),
        writer_(out, {names_.begin(), names_.end()}) {}

  Status run() {
    CFT_ASSIGN(shapes_, graph_.infer(0));
    for (const Node& node : graph_.nodes()) {
      CFT_TRY(write(node).with_context(node.where));
    }
    for (int blob : graph_.outputs()) {
      if (inputs_.contains(blob)) continue;  // such as labels that only a loss would have read
      describe_value(names_[size_t(blob)], shapes_[size_t(blob)], out_->add_output());
    }
    return {};
  }

 private:
  /// An input keeps its name, else the newest blob does; the others, of layers in place, get a number.
  static OnnxValues blob_names(const Graph& graph) {
    OnnxValues names = graph.blob_names();
    std::map<std::string, size_t> keepers;
    for (size_t i = 0; i < names.size(); ++i) keepers[names[i]] = i;
    for (const Node& node : graph.nodes()) {
      if (node.param.type() != "Input") continue;
      for (int top : node.tops) keepers[names[size_t(top)]] = size_t(top);
    }
    UniqueNames unique({graph.blob_names().begin(), graph.blob_names().end()});
    for (size_t i = 0; i < names.size(); ++i) {
      if (keepers[graph.blob_names()[i]] != i) names[i] = unique.make(names[i]);
    }
    return names;
  }

  Status write(const Node& node) {
    const std::string& type = node.param.type();
    if (type == "Input") {
      for (int top : node.tops) {
        describe_value(names_[size_t(top)], shapes_[size_t(top)], out_->add_input());
        inputs_.insert(top);
      }
      return {};
    }
    const Exporter* exporter = find_exporter(type);
    if (!exporter) {
      return invalid_argument(fmt::format(
          "type {} has no ONNX form; export the net's deploy form, without data, loss and accuracy "
          "layers",
          type));
    }
    writer_.begin_layer(node.param.name());
    const ExportLayer layer = describe(node);
    CFT_ASSIGN(const OnnxValues values, exporter->write(layer, writer_));
    for (size_t i = 0; i < values.size(); ++i) name_top(layer, values[i], node.tops[i]);
    if (exporter->whole) {
      OnnxValues tops;
      for (int top : node.tops) tops.push_back(names_[size_t(top)]);
      describe_whole_layer(layer, tops, writer_.first_node());
    }
    return {};
  }

  ExportLayer describe(const Node& node) const {
    ExportLayer layer{node.param, {}, {}, {}, {}, {}};
    for (int blob : node.bottoms) {
      layer.bottoms.push_back(names_[size_t(blob)]);
      layer.bottom_shapes.push_back(shapes_[size_t(blob)]);
    }
    for (int blob : node.tops) layer.top_shapes.push_back(shapes_[size_t(blob)]);
    for (int index : node.params) {
      const Param& param = graph_.params()[size_t(index)];
      layer.params.push_back(arena_.subspan(size_t(param.offset), size_t(param.shape.count())));
      layer.param_shapes.push_back(param.shape);
    }
    return layer;
  }

  /// A top that is a bottom shares its value, unless the model has to give it under its own name.
  void name_top(const ExportLayer& layer, std::string value, int top) {
    std::string& name = names_[size_t(top)];
    const bool shared = std::count(layer.bottoms.begin(), layer.bottoms.end(), value) > 0;
    const std::vector<int>& outputs = graph_.outputs();
    if (shared && std::count(outputs.begin(), outputs.end(), top) == 0) {
      name = value;
      return;
    }
    if (shared) value = writer_.node("Identity", {value});
    writer_.rename(value, name);
  }

  const Graph& graph_;
  std::span<const float> arena_;
  onnx::GraphProto* out_;
  OnnxValues names_;  // of the values behind the graph's blobs
  std::set<int> inputs_;
  std::vector<Shape> shapes_;
  OnnxWriter writer_;
};

/// A parameter that the file lacks would be written as zeros.
Status check_complete(const Graph& graph, const caffe::NetParameter& weights) {
  std::set<std::string> given;
  for (const caffe::LayerParameter& layer : weights.layer()) {
    if (layer.blobs_size() > 0) given.insert(layer.name());
  }
  for (const Param& param : graph.params()) {
    if (given.contains(param.layer)) continue;
    return invalid_argument("there are no weights for layer '" + param.layer +
                            "'; give the file that was saved of this net");
  }
  return {};
}

}  // namespace

Result<std::string> export_onnx(const Graph& graph, std::span<const float> arena) {
  onnx::ModelProto model;
  model.set_ir_version(kFileVersion);
  model.set_producer_name("cafetiere");
  model.add_opset_import()->set_version(kOpset);
  model.mutable_graph()->set_name(graph.name().empty() ? "net" : graph.name());
  CFT_TRY(Export(graph, arena, model.mutable_graph()).run());
  const size_t size = model.ByteSizeLong();
  if (size > size_t(kMaxFileBytes)) {
    return invalid_argument(
        fmt::format("the model takes {} bytes; an ONNX file has at most {}", size, kMaxFileBytes));
  }
  return model.SerializeAsString();
}

Result<std::string> export_onnx(const Graph& graph, const caffe::NetParameter& weights,
                                std::vector<std::string>* ignored) {
  std::vector<float> arena(size_t(graph.arena_size()));
  CFT_TRY(check_complete(graph, weights));
  CFT_TRY(load_weights(graph, weights, arena, ignored));
  return export_onnx(graph, arena);
}

}  // namespace cafetiere
