// SPDX-License-Identifier: Apache-2.0
// OnnxWriter: an ONNX graph as it grows, node by node, in topological order.
#pragma once

#include <onnx/onnx.pb.h>

#include <map>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/onnx/names.h"
#include "core/tensor/shape.h"

namespace cafetiere {

/// Names of the tensors that flow between nodes.
using OnnxValues = std::vector<std::string>;

/// An attribute of a node.
struct OnnxAttribute {
  const char* name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<std::string>> value;
};

class OnnxWriter {
 public:
  /// Nodes and constants go to `graph`. Names in `reserved` are not given to intermediate values.
  OnnxWriter(onnx::GraphProto* graph, std::set<std::string> reserved)
      : graph_(graph), names_(std::move(reserved)) {}

  /// Names of what follows begin with the layer's.
  void begin_layer(const std::string& name) {
    layer_ = name;
    first_node_ = graph_->node_size();
  }
  /// The first node of the layer that was begun; null before it has one.
  onnx::NodeProto* first_node() {
    return first_node_ < graph_->node_size() ? graph_->mutable_node(first_node_) : nullptr;
  }

  /// Adds a node with one output, or `outputs`, and gives back their names. An empty input is one
  /// left out.
  std::string node(const char* op, const OnnxValues& inputs,
                   const std::vector<OnnxAttribute>& attributes = {});
  OnnxValues nodes(const char* op, const OnnxValues& inputs, size_t outputs,
                   const std::vector<OnnxAttribute>& attributes = {});

  /// The same of an operator of ai.onnx.ml.
  std::string ml_node(const char* op, const OnnxValues& inputs,
                      const std::vector<OnnxAttribute>& attributes);

  /// Adds an input of the model, unless it is there, and gives back its name.
  std::string input(const std::string& name, onnx::TensorProto::DataType type, const Shape& shape,
                    const std::string& text);

  /// Constants; what is the layer's parameter `i` is called so.
  std::string parameter(size_t i, const Shape& shape, std::span<const float> values);
  std::string floats(const Shape& shape, std::span<const float> values);
  std::string filled(const Shape& shape, float value);
  std::string scalar(float value) { return filled({}, value); }
  std::string integers(const std::vector<int64_t>& values) {
    return integers({int64_t(values.size())}, values);
  }
  std::string integer(int64_t value) { return integers({}, {value}); }
  std::string doubles(const Shape& shape, std::span<const double> values);
  std::string real(double value) { return doubles({}, {&value, 1}); }
  std::string texts(const std::vector<std::string>& values);

  /// Which parameter of its layer a constant is, by name.
  const std::map<std::string, size_t>& parameters() const { return parameters_; }

  /// x of any shape as `shape`; x * a and x + a, which are x where a changes nothing.
  std::string reshape(const std::string& x, const Shape& shape);
  std::string times(const std::string& x, float a);
  std::string plus(const std::string& x, float a);

  /// Gives a value that a node of this layer made another name, everywhere.
  void rename(const std::string& value, const std::string& name);

 private:
  std::string fresh(const std::string& what) { return names_.make(layer_ + "/" + what); }
  std::string integers(const Shape& shape, const std::vector<int64_t>& values);
  onnx::TensorProto* constant(const std::string& what, const Shape& shape,
                              onnx::TensorProto::DataType type);

  onnx::GraphProto* graph_;
  UniqueNames names_;
  std::map<std::string, size_t> parameters_;
  std::string layer_;
  int first_node_ = 0;
};

/// Tells the name, type and shape of a graph's input or output.
void describe_value(const std::string& name, const Shape& shape, onnx::ValueInfoProto* info,
                    onnx::TensorProto::DataType type = onnx::TensorProto::FLOAT);

}  // namespace cafetiere
