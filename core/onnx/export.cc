// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/graph/arena.h"
#include "core/model/file.h"
#include "core/onnx/families.h"
#include "core/onnx/open_rows.h"
#include "core/onnx/whole_layer.h"

namespace cafetiere {
namespace {

constexpr int kOpset = 17;
constexpr int kMlOpset = 3;      // of ai.onnx.ml
constexpr int kFileVersion = 8;  // the file format that came with this opset
constexpr const char* kPredictedLabel = "predictedLabel";

/// The columns of tables, which are inputs of the model.
std::set<std::string> table_columns(const Graph& graph) {
  std::set<std::string> names;
  for (const Node& node : graph.nodes()) {
    for (const auto& top : node.param.table_data_param().top()) {
      for (const auto& column : top.column()) names.insert(column.name());
    }
  }
  return names;
}

class Export {
 public:
  Export(const Graph& graph, std::span<const float> arena, const OnnxClasses& classes,
         onnx::GraphProto* out)
      : graph_(graph),
        arena_(arena),
        classes_(classes),
        out_(out),
        names_(blob_names(graph)),
        writer_(out, reserved()) {}

  /// Writes the graph for so many rows; 0: as many as the net says.
  Status run(int64_t rows) {
    CFT_ASSIGN(shapes_, graph_.infer(rows));
    for (const Node& node : graph_.nodes()) {
      CFT_TRY(write(node).with_context(node.where));
    }
    for (int blob : graph_.outputs()) {
      if (inputs_.contains(blob)) continue;  // such as labels that only a loss would have read
      describe_value(names_[size_t(blob)], shapes_[size_t(blob)], out_->add_output());
      if (is_of_classes(shapes_[size_t(blob)])) write_label(size_t(blob));
    }
    return {};
  }

 private:
  std::set<std::string> reserved() const {
    std::set<std::string> names = table_columns(graph_);
    names.insert(names_.begin(), names_.end());
    if (!classes_.labels.empty()) names.insert(kPredictedLabel);
    return names;
  }

  bool is_of_classes(const Shape& shape) const {
    const auto count = int64_t(classes_.labels.size());
    return count > 0 && shape.axes() == 2 && shape[1] == count;
  }

  /// As Spark's classifiers: by a threshold of 0 a class that is possible at all is predicted.
  void write_label(size_t probabilities) {
    writer_.begin_layer(kPredictedLabel);
    std::string share = names_[probabilities];
    if (!classes_.thresholds.empty()) {
      const std::string p =
          writer_.node("Cast", {share}, {{"to", int64_t(onnx::TensorProto::DOUBLE)}});
      const std::string divisors =
          writer_.doubles({int64_t(classes_.thresholds.size())}, classes_.thresholds);
      const std::string none = writer_.node("Equal", {p, writer_.real(0)});
      share = writer_.node("Where", {none, p, writer_.node("Div", {p, divisors})});
    }
    const std::string best =
        writer_.node("ArgMax", {share}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
    const std::string label = writer_.node("Gather", {writer_.texts(classes_.labels), best});
    writer_.rename(label, kPredictedLabel);
    describe_value(kPredictedLabel, {shapes_[probabilities][0]}, out_->add_output(),
                   onnx::TensorProto::STRING);
  }

  /// An input keeps its name, else the newest blob does; the others, of layers in place, get a number.
  static OnnxValues blob_names(const Graph& graph) {
    OnnxValues names = graph.blob_names();
    std::map<std::string, size_t> keepers;
    for (size_t i = 0; i < names.size(); ++i) keepers[names[i]] = i;
    for (const Node& node : graph.nodes()) {
      if (node.param.type() != "Input") continue;
      for (int top : node.tops) keepers[names[size_t(top)]] = size_t(top);
    }
    const std::set<std::string> columns = table_columns(graph);
    std::set<std::string> taken = columns;
    taken.insert(graph.blob_names().begin(), graph.blob_names().end());
    UniqueNames unique(std::move(taken));
    for (size_t i = 0; i < names.size(); ++i) {
      const bool kept = keepers[graph.blob_names()[i]] == i && !columns.contains(names[i]);
      if (!kept) names[i] = unique.make(names[i]);
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
    for (size_t i = 0; i < node.params.size(); ++i) {
      const Param& param = graph_.params()[size_t(node.params[i])];
      layer.params.push_back(arena_.subspan(size_t(param.offset), size_t(param.shape.count())));
      layer.param_shapes.push_back(node.param_shapes[i]);
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
  const OnnxClasses& classes_;
  onnx::GraphProto* out_;
  OnnxValues names_;  // of the values behind the graph's blobs
  std::set<int> inputs_;
  std::vector<Shape> shapes_;
  OnnxWriter writer_;
};

}  // namespace

Result<std::string> export_onnx(const Graph& graph, std::span<const float> arena,
                                const OnnxClasses& classes) {
  if (!classes.thresholds.empty() && classes.thresholds.size() != classes.labels.size()) {
    return invalid_argument(fmt::format("{} thresholds for {} classes: give one for each",
                                        classes.thresholds.size(), classes.labels.size()));
  }
  onnx::ModelProto model;
  model.set_ir_version(kFileVersion);
  model.set_producer_name("cafetiere");
  model.add_opset_import()->set_version(kOpset);
  model.mutable_graph()->set_name(graph.name().empty() ? "net" : graph.name());
  if (table_columns(graph).empty()) {
    CFT_TRY(Export(graph, arena, classes, model.mutable_graph()).run(0));
  } else {
    onnx::OperatorSetIdProto* ml = model.add_opset_import();
    ml->set_domain("ai.onnx.ml");
    ml->set_version(kMlOpset);
    onnx::GraphProto more = model.graph();
    CFT_TRY(Export(graph, arena, classes, model.mutable_graph()).run(kFewRows));
    CFT_TRY(Export(graph, arena, classes, &more).run(kMoreRows));
    CFT_TRY(open_rows(more, model.mutable_graph()));
  }
  const size_t size = model.ByteSizeLong();
  if (size > size_t(kMaxFileBytes)) {
    return invalid_argument(
        fmt::format("the model takes {} bytes; an ONNX file has at most {}", size, kMaxFileBytes));
  }
  return model.SerializeAsString();
}

Result<std::string> export_onnx(const Graph& graph, const caffe::NetParameter& weights,
                                std::vector<std::string>* ignored, const OnnxClasses& classes) {
  std::vector<float> arena(size_t(graph.arena_size()));
  CFT_TRY(check_complete(graph, weights, graph.outputs()));
  CFT_TRY(load_weights(graph, weights, arena, ignored));
  return export_onnx(graph, arena, classes);
}

}  // namespace cafetiere
