// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/whole_layer.h"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "core/model/blob.h"
#include "core/model/parse_text.h"
#include "core/model/prototxt.h"

namespace cafetiere {
namespace {

constexpr std::string_view kOpening = "A layer of Caffe's, written out from here on:\n";

/// A layer written anew, beside the nodes of the file that should be the same but for names.
class Comparison {
 public:
  Comparison(const caffe::LayerParameter& param, const LayerShapes& shapes,
             const OnnxReader& reader)
      : reader_(reader),
        layer_{
            param, {param.bottom().begin(), param.bottom().end()}, shapes.bottoms, shapes.tops, {},
            {}},
        writer_(&made_, {param.bottom().begin(), param.bottom().end()}) {
    for (const ParamRequest& request : shapes.params) layer_.param_shapes.push_back(request.shape);
    // The constants are written without values: those are what the file is asked for.
    layer_.params.resize(layer_.param_shapes.size());
    params_.resize(layer_.param_shapes.size());
    for (const std::string& bottom : layer_.bottoms) names_[bottom] = bottom;
  }

  /// Compares with the nodes from `first` on; gives their number.
  Result<int> run(const Exporter& exporter, const onnx::GraphProto& graph, int first) {
    writer_.begin_layer(layer_.param.name());
    CFT_ASSIGN(tops_, exporter.write(layer_, writer_));
    for (const onnx::TensorProto& tensor : made_.initializer()) constants_[tensor.name()] = &tensor;
    if (made_.node_size() > graph.node_size() - first) return differs("the file ends before");
    for (int i = 0; i < made_.node_size(); ++i) {
      CFT_TRY(match(made_.node(i), graph.node(first + i)));
    }
    // One that no node reads, such as the recurrent weights of a single step, has kept its name.
    for (const auto& [name, i] : writer_.parameters()) {
      if (!params_[i]) CFT_TRY(match_constant(name, name));
    }
    return made_.node_size();
  }

  /// What the file calls the layer's tops, and the values of its parameters.
  OnnxValues tops() const {
    OnnxValues tops;
    for (const std::string& top : tops_) tops.push_back(names_.at(top));
    return tops;
  }
  void give_params(caffe::LayerParameter* to) const {
    for (size_t i = 0; i < params_.size(); ++i) {
      floats_to_blob(*params_[i], layer_.param_shapes[i], to->add_blobs());
    }
  }

 private:
  Status differs(const std::string& what) const {
    return invalid_argument(fmt::format(
        "it begins layer '{}' ({}), but {}: only as this program wrote it is the layer read back",
        layer_.param.name(), layer_.param.type(), what));
  }

  Status match(const onnx::NodeProto& mine, const onnx::NodeProto& theirs) {
    const auto same_text = [](const auto& a, const auto& b) {
      return a.SerializeAsString() == b.SerializeAsString();
    };
    const bool alike = mine.op_type() == theirs.op_type() && theirs.domain().empty() &&
                       mine.input_size() == theirs.input_size() &&
                       mine.output_size() == theirs.output_size() &&
                       std::equal(mine.attribute().begin(), mine.attribute().end(),
                                  theirs.attribute().begin(), theirs.attribute().end(), same_text);
    if (!alike) return differs("node '" + theirs.name() + "' is not the one that follows");
    for (int i = 0; i < mine.input_size(); ++i)
      CFT_TRY(match_input(mine.input(i), theirs.input(i)));
    for (int i = 0; i < mine.output_size(); ++i) names_[mine.output(i)] = theirs.output(i);
    return {};
  }

  Status match_input(const std::string& mine, const std::string& theirs) {
    const auto known = names_.find(mine);
    if (known == names_.end() && constants_.contains(mine)) return match_constant(mine, theirs);
    const bool same = known == names_.end() ? mine == theirs : known->second == theirs;
    return same ? Status() : differs("value '" + theirs + "' is not read where it should be");
  }

  Status match_constant(const std::string& mine, const std::string& theirs) {
    names_[mine] = theirs;
    const onnx::TensorProto& tensor = *constants_.at(mine);
    const Shape shape(std::vector<int64_t>(tensor.dims().begin(), tensor.dims().end()));
    CFT_ASSIGN(const Shape given, reader_.constant_shape(theirs));
    bool same = given == shape;
    const auto param = writer_.parameters().find(mine);
    if (param != writer_.parameters().end()) {
      CFT_ASSIGN(OnnxFloats floats, reader_.floats(theirs));
      params_[param->second] = std::move(floats.values);
    } else if (tensor.data_type() == onnx::TensorProto::FLOAT) {
      CFT_ASSIGN(const OnnxFloats floats, reader_.floats(theirs));
      same = same && bytes_of(floats.values) == tensor.raw_data();
    } else {
      CFT_ASSIGN(const std::vector<int64_t> integers, reader_.integers(theirs));
      same = same && bytes_of(integers) == tensor.raw_data();
    }
    return same ? Status() : differs("constant '" + theirs + "' is another");
  }

  template <class T>
  static std::string_view bytes_of(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
  }

  const OnnxReader& reader_;
  ExportLayer layer_;
  onnx::GraphProto made_;
  OnnxWriter writer_;
  OnnxValues tops_;
  std::map<std::string, const onnx::TensorProto*> constants_;
  std::map<std::string, std::string> names_;  // of what was made, as the file has it
  std::vector<std::optional<std::vector<float>>> params_;
};

}  // namespace

void describe_whole_layer(const ExportLayer& layer, const OnnxValues& tops,
                          onnx::NodeProto* first) {
  caffe::LayerParameter param = layer.param;
  for (auto* training : {param.mutable_include(), param.mutable_exclude()}) training->Clear();
  param.clear_phase();
  param.clear_param();
  param.clear_loss_weight();
  param.clear_propagate_down();
  param.clear_blobs();
  param.mutable_bottom()->Assign(layer.bottoms.begin(), layer.bottoms.end());
  param.mutable_top()->Assign(tops.begin(), tops.end());
  first->set_doc_string(std::string(kOpening) + to_text(param));
}

bool begins_whole_layer(const onnx::NodeProto& node) {
  return node.doc_string().starts_with(kOpening);
}

Result<int> read_whole_layer(const onnx::GraphProto& graph, int first, OnnxReader& reader) {
  const std::string& text = graph.node(first).doc_string();
  caffe::LayerParameter layer;
  CFT_TRY(parse_text(std::string_view(text).substr(kOpening.size()), "doc_string", &layer));
  layer.clear_blobs();
  const Exporter* exporter = find_exporter(layer.type());
  if (!exporter || !exporter->whole) {
    return invalid_argument("a layer of type " + layer.type() + " is not written out in nodes");
  }
  CFT_ASSIGN(const LayerShapes shapes, reader.shapes_of(layer));
  Comparison comparison(layer, shapes, reader);
  CFT_ASSIGN(const int nodes, comparison.run(*exporter, graph, first));
  const OnnxValues tops = comparison.tops();
  layer.mutable_top()->Assign(tops.begin(), tops.end());
  comparison.give_params(&layer);
  CFT_TRY(reader.add(std::move(layer)));
  return nodes;
}

}  // namespace cafetiere
