// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/import.h"

#include <fmt/format.h>

#include <limits>

#include "core/onnx/families.h"
#include "core/onnx/whole_layer.h"

namespace cafetiere {
namespace {

constexpr int64_t kOldestOpset = 9;

const Importer* find_importer(const std::string& op) {
  for (const OnnxFamily* family : kOnnxFamilies) {
    for (const Importer& importer : family->importers) {
      if (op == importer.op) return &importer;
    }
  }
  return nullptr;
}

Result<int64_t> opset_of(const onnx::ModelProto& model) {
  for (const onnx::OperatorSetIdProto& set : model.opset_import()) {
    if (!set.domain().empty() && set.domain() != "ai.onnx") continue;
    if (set.version() >= kOldestOpset) return set.version();
    return invalid_argument(
        fmt::format("the model uses opset {}; export it again with opset {} or later",
                    set.version(), kOldestOpset));
  }
  return invalid_argument("the model does not say which opset it uses");
}

Result<Shape> input_shape(const onnx::ValueInfoProto& input, int64_t batch) {
  const onnx::TypeProto::Tensor& type = input.type().tensor_type();
  if (type.elem_type() != onnx::TensorProto::FLOAT &&
      type.elem_type() != onnx::TensorProto::INT64 &&
      type.elem_type() != onnx::TensorProto::INT32) {
    return invalid_argument(fmt::format(
        "input {} is of type {}, not FLOAT, INT32 or INT64; a model of a table, whose inputs are "
        "columns, is read from the folder that it was saved to",
        input.name(), onnx::TensorProto::DataType_Name(type.elem_type())));
  }
  std::vector<int64_t> dims;
  for (const auto& dim : type.shape().dim()) {
    const bool known = dim.has_dim_value() && dim.dim_value() > 0;
    if (!known && !dims.empty()) {
      return invalid_argument(fmt::format(
          "input {}: size {} is left open; only the first may be: export with fixed sizes",
          input.name(), dims.size()));
    }
    dims.push_back(known ? dim.dim_value() : batch);
  }
  return Shape(std::move(dims));
}

Status read_node(const onnx::NodeProto& proto, OnnxReader& reader) {
  if (!proto.domain().empty() && proto.domain() != "ai.onnx") {
    return invalid_argument("operator of the domain " + proto.domain() +
                            ": only ONNX's own are read");
  }
  const Importer* importer = find_importer(proto.op_type());
  if (!importer) return invalid_argument("there is no layer for operator " + proto.op_type());
  if (proto.output_size() == 0 || proto.output(0).empty()) {
    return invalid_argument("the node has no output");
  }
  if (proto.op_type() != "Constant" && (proto.input_size() == 0 || proto.input(0).empty())) {
    return invalid_argument("the node has no input");
  }
  return importer->read(OnnxNode(proto), reader);
}

}  // namespace

Result<caffe::NetParameter> import_onnx(std::string_view bytes, int64_t batch) {
  onnx::ModelProto model;
  if (bytes.size() > size_t(std::numeric_limits<int>::max()) ||
      !model.ParseFromArray(bytes.data(), int(bytes.size())) || !model.has_graph()) {
    return invalid_argument("is not an ONNX model, or is cut off");
  }
  CFT_ASSIGN(const int64_t opset, opset_of(model));
  const onnx::GraphProto& graph = model.graph();
  OnnxReader reader(opset, graph);
  for (const onnx::ValueInfoProto& input : graph.input()) {
    if (reader.is_constant(input.name())) continue;  // older files list their weights here, too
    CFT_ASSIGN(const Shape shape, input_shape(input, batch));
    const bool floats = input.type().tensor_type().elem_type() == onnx::TensorProto::FLOAT;
    CFT_TRY(reader.add_input(input.name(), shape, !floats).with_context("input " + input.name()));
  }
  for (int i = 0; i < graph.node_size();) {
    const onnx::NodeProto& node = graph.node(i);
    const std::string& name =
        node.name().empty() && node.output_size() ? node.output(0) : node.name();
    const std::string where = fmt::format("node '{}' ({})", name, node.op_type());
    if (begins_whole_layer(node)) {
      Result<int> nodes = read_whole_layer(graph, i, reader);
      if (!nodes.ok()) return nodes.status().with_context(where);
      i += *nodes;
    } else {
      CFT_TRY(read_node(node, reader).with_context(where));
      ++i;
    }
  }
  for (const onnx::ValueInfoProto& output : graph.output()) {
    CFT_TRY(reader.name_output(output.name()).with_context("output " + output.name()));
  }
  return std::move(reader.net());
}

caffe::NetParameter structure_of(const caffe::NetParameter& net) {
  caffe::NetParameter text = net;
  for (caffe::LayerParameter& layer : *text.mutable_layer()) layer.clear_blobs();
  return text;
}

}  // namespace cafetiere
