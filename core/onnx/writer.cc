// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/writer.h"

#include <algorithm>

namespace cafetiere {
namespace {

void set_attribute(const OnnxAttribute& from, onnx::AttributeProto* to) {
  to->set_name(from.name);
  if (const auto* integer = std::get_if<int64_t>(&from.value)) {
    to->set_type(onnx::AttributeProto::INT);
    to->set_i(*integer);
  } else if (const auto* number = std::get_if<float>(&from.value)) {
    to->set_type(onnx::AttributeProto::FLOAT);
    to->set_f(*number);
  } else if (const auto* text = std::get_if<std::string>(&from.value)) {
    to->set_type(onnx::AttributeProto::STRING);
    to->set_s(*text);
  } else if (const auto* integers = std::get_if<std::vector<int64_t>>(&from.value)) {
    to->set_type(onnx::AttributeProto::INTS);
    to->mutable_ints()->Add(integers->begin(), integers->end());
  } else {
    to->set_type(onnx::AttributeProto::STRINGS);
    for (const std::string& text : std::get<std::vector<std::string>>(from.value)) {
      to->add_strings(text);
    }
  }
}

}  // namespace

std::string OnnxWriter::node(const char* op, const OnnxValues& inputs,
                             const std::vector<OnnxAttribute>& attributes) {
  return nodes(op, inputs, 1, attributes).front();
}

OnnxValues OnnxWriter::nodes(const char* op, const OnnxValues& inputs, size_t outputs,
                             const std::vector<OnnxAttribute>& attributes) {
  onnx::NodeProto* node = graph_->add_node();
  node->set_op_type(op);
  node->set_name(fresh(op));
  for (const std::string& input : inputs) node->add_input(input);
  OnnxValues made;
  for (size_t i = 0; i < outputs; ++i) {
    made.push_back(fresh(std::string(op) + "_out"));
    node->add_output(made.back());
  }
  for (const OnnxAttribute& attribute : attributes) {
    set_attribute(attribute, node->add_attribute());
  }
  return made;
}

std::string OnnxWriter::ml_node(const char* op, const OnnxValues& inputs,
                                const std::vector<OnnxAttribute>& attributes) {
  const std::string value = node(op, inputs, attributes);
  graph_->mutable_node(graph_->node_size() - 1)->set_domain("ai.onnx.ml");
  return value;
}

std::string OnnxWriter::input(const std::string& name, onnx::TensorProto::DataType type,
                              const Shape& shape, const std::string& text) {
  for (const onnx::ValueInfoProto& known : graph_->input()) {
    if (known.name() == name) return name;
  }
  onnx::ValueInfoProto* info = graph_->add_input();
  describe_value(name, shape, info, type);
  info->set_doc_string(text);
  return name;
}

onnx::TensorProto* OnnxWriter::constant(const std::string& what, const Shape& shape,
                                        onnx::TensorProto::DataType type) {
  onnx::TensorProto* tensor = graph_->add_initializer();
  tensor->set_name(fresh(what));
  tensor->set_data_type(type);
  for (int64_t dim : shape.dims()) tensor->add_dims(dim);
  return tensor;
}

std::string OnnxWriter::parameter(size_t i, const Shape& shape, std::span<const float> values) {
  onnx::TensorProto* tensor =
      constant("param_" + std::to_string(i), shape, onnx::TensorProto::FLOAT);
  tensor->set_raw_data(values.data(), values.size_bytes());
  parameters_[tensor->name()] = i;
  return tensor->name();
}

std::string OnnxWriter::floats(const Shape& shape, std::span<const float> values) {
  onnx::TensorProto* tensor = constant("constant", shape, onnx::TensorProto::FLOAT);
  tensor->set_raw_data(values.data(), values.size_bytes());
  return tensor->name();
}

std::string OnnxWriter::doubles(const Shape& shape, std::span<const double> values) {
  onnx::TensorProto* tensor = constant("constant", shape, onnx::TensorProto::DOUBLE);
  tensor->set_raw_data(values.data(), values.size_bytes());
  return tensor->name();
}

std::string OnnxWriter::texts(const std::vector<std::string>& values) {
  onnx::TensorProto* tensor =
      constant("constant", {int64_t(values.size())}, onnx::TensorProto::STRING);
  for (const std::string& value : values) tensor->add_string_data(value);
  return tensor->name();
}

std::string OnnxWriter::filled(const Shape& shape, float value) {
  return floats(shape, std::vector<float>(size_t(shape.count()), value));
}

std::string OnnxWriter::integers(const Shape& shape, const std::vector<int64_t>& values) {
  onnx::TensorProto* tensor = constant("constant", shape, onnx::TensorProto::INT64);
  tensor->set_raw_data(values.data(), values.size() * sizeof(int64_t));
  return tensor->name();
}

std::string OnnxWriter::reshape(const std::string& x, const Shape& shape) {
  return node("Reshape", {x, integers(shape.dims())});
}

std::string OnnxWriter::times(const std::string& x, float a) {
  return a == 1 ? x : node("Mul", {x, scalar(a)});
}

std::string OnnxWriter::plus(const std::string& x, float a) {
  return a == 0 ? x : node("Add", {x, scalar(a)});
}

void OnnxWriter::rename(const std::string& value, const std::string& name) {
  for (int i = first_node_; i < graph_->node_size(); ++i) {
    onnx::NodeProto* node = graph_->mutable_node(i);
    for (auto* names : {node->mutable_input(), node->mutable_output()}) {
      std::replace(names->begin(), names->end(), value, name);
    }
  }
}

void describe_value(const std::string& name, const Shape& shape, onnx::ValueInfoProto* info,
                    onnx::TensorProto::DataType element) {
  info->set_name(name);
  onnx::TypeProto::Tensor* type = info->mutable_type()->mutable_tensor_type();
  type->set_elem_type(element);
  type->mutable_shape();
  for (int64_t dim : shape.dims()) type->mutable_shape()->add_dim()->set_dim_value(dim);
}

}  // namespace cafetiere
