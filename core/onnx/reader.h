// SPDX-License-Identifier: Apache-2.0
// OnnxReader: an ONNX graph as it becomes a net, layer by layer.
#pragma once

#include <onnx/onnx.pb.h>

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/graph/layer.h"
#include "core/onnx/names.h"

namespace cafetiere {

/// A node with its attributes; what is not given has the value that the caller names.
class OnnxNode {
 public:
  explicit OnnxNode(const onnx::NodeProto& proto) : proto_(proto) {}

  const std::string& op() const { return proto_.op_type(); }
  const onnx::NodeProto& proto() const { return proto_; }
  int inputs() const { return proto_.input_size(); }
  int outputs() const { return proto_.output_size(); }
  /// Whether input i is there: optional ones are left out at the end or have no name.
  bool has(int i) const { return i < inputs() && !proto_.input(i).empty(); }
  const std::string& input(int i) const { return proto_.input(i); }
  const std::string& output(int i = 0) const { return proto_.output(i); }

  bool has_attribute(const char* name) const { return find(name) != nullptr; }
  const onnx::AttributeProto* find(const char* name) const;
  int64_t integer(const char* name, int64_t otherwise) const;
  float number(const char* name, float otherwise) const;
  std::string text(const char* name, const char* otherwise) const;
  std::vector<int64_t> integers(const char* name) const;

 private:
  const onnx::NodeProto& proto_;
};

/// A constant as floats.
struct OnnxFloats {
  Shape shape;
  std::vector<float> values;
};

/// Holds what is known so far: the constants, and the values that are blobs with their shapes. Each
/// layer that is added has its shapes inferred and its weights checked by the layer type itself.
class OnnxReader {
 public:
  /// Reads `graph`, which outlives the reader; only its constants at first.
  OnnxReader(int64_t opset, const onnx::GraphProto& graph);

  int64_t opset() const { return opset_; }
  const caffe::NetParameter& net() const { return net_; }
  caffe::NetParameter& net() { return net_; }

  /// A constant of the file, or one that was computed.
  void add_constant(const std::string& name, const onnx::TensorProto* tensor);
  Status add_integers(const std::string& name, const Shape& shape,
                      const std::vector<int64_t>& values);
  Status add_number(const std::string& name, float value);
  bool is_constant(const std::string& name) const { return constants_.contains(name); }
  Result<OnnxFloats> floats(const std::string& name) const;
  Result<std::vector<int64_t>> integers(const std::string& name) const;
  Result<Shape> constant_shape(const std::string& name) const;

  /// The shape of a value that is a blob.
  Result<Shape> shape(const std::string& value) const;
  /// Whether a node reads a value, or the model gives it.
  bool is_used(const std::string& value) const { return used_.contains(value); }
  /// Whether all that read a value are Gathers, of which it is the index.
  bool is_index(const std::string& value) const { return !numbers_.contains(value); }
  /// Whether a value holds integers: an input of the model that does, or what is made of one.
  bool holds_integers(const std::string& value) const { return integers_.contains(value); }
  /// Says so of a node's output where its first input does not.
  void set_integers(const std::string& value, bool integers);
  Status add_input(const std::string& name, const Shape& shape, bool integers);
  /// Lets `name` stand for the blob, or the constant, behind `value`.
  Status alias(const std::string& name, const std::string& value);
  /// Makes the blob behind an output of the model bear the output's name.
  Status name_output(const std::string& name);
  /// A value's name that the model does not have, for what lies between two layers of one node.
  std::string fresh(const std::string& near) { return value_names_.make(near + "_inner"); }

  /// A layer of `type` that reads the node's first input and makes its first output, to be completed
  /// and passed to add().
  caffe::LayerParameter layer(const char* type, const OnnxNode& node) const;
  /// The shapes of a layer whose bottoms are values: what its type makes of them.
  Result<LayerShapes> shapes_of(const caffe::LayerParameter& layer) const;
  /// Adds a layer. Its bottoms are values, its tops names of new values.
  Status add(caffe::LayerParameter layer);
  /// Adds a Reshape of `bottom` to `dims`, where 0 stays and -1 is the rest. What makes the node's
  /// output is called as the node, another like its top.
  Status add_reshape(const OnnxNode& node, const std::string& bottom, const std::string& top,
                     const std::vector<int64_t>& dims);
  /// `value`, with ones in front where it has fewer axes: an operand of more gives ONNX's result as
  /// many.
  Result<std::string> with_axes(const OnnxNode& node, const std::string& value, int axes);

 private:
  struct Value {
    std::string blob;
    Shape shape;
  };
  Result<const onnx::TensorProto*> constant(const std::string& name) const;

  int64_t opset_;
  caffe::NetParameter net_;
  std::map<std::string, const onnx::TensorProto*> constants_;
  std::deque<onnx::TensorProto> computed_;
  std::map<std::string, Value> values_;
  std::set<std::string> integers_, used_, numbers_;
  UniqueNames layer_names_, value_names_;
};

}  // namespace cafetiere
