// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/reader.h"

#include <fmt/format.h>

#include <cstring>

#include "core/layers/registry.h"
#include "core/model/blob.h"

namespace cafetiere {
namespace {

/// The longest list that is computed from constants: a few nodes that double one need any memory.
constexpr size_t kMaxComputed = 4096;

/// The values of a tensor, whichever field they lie in, as Out.
template <class Stored, class Out, class Field>
Status copy_values(const onnx::TensorProto& tensor, const Field& field, int64_t count,
                   std::vector<Out>* out) {
  const std::string& raw = tensor.raw_data();
  if (int64_t(raw.size()) == count * int64_t(sizeof(Stored)) && count > 0) {
    out->reserve(size_t(count));
    for (int64_t i = 0; i < count; ++i) {
      Stored value;
      std::memcpy(&value, raw.data() + size_t(i) * sizeof(Stored), sizeof(Stored));
      out->push_back(Out(value));
    }
    return {};
  }
  if (!raw.empty() || field.size() != count) {
    return invalid_argument(
        fmt::format("constant {} holds {} bytes and {} values; its shape says {}", tensor.name(),
                    raw.size(), field.size(), count));
  }
  out->assign(field.begin(), field.end());
  return {};
}

/// Sizes from a file as a shape that a blob may have.
template <class Dims>
Result<Shape> checked_shape(const Dims& dims) {
  Shape shape({dims.begin(), dims.end()});
  CFT_TRY(check_blob_shape(shape));
  return shape;
}

Result<Shape> tensor_shape(const onnx::TensorProto& tensor) { return checked_shape(tensor.dims()); }

Status check_count(const char* what, int count, int min, int max) {
  if (count >= min && (max < 0 || count <= max)) return {};
  return invalid_argument(
      fmt::format("it has {} {}; the layer takes {}", count, what,
                  max < 0 ? fmt::format("{} or more", min) : fmt::format("{} to {}", min, max)));
}

template <class Out>
Result<std::vector<Out>> tensor_values(const onnx::TensorProto& tensor) {
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL) {
    return invalid_argument("constant " + tensor.name() +
                            " lies in another file; export the model with its weights inside");
  }
  CFT_ASSIGN(const Shape shape, tensor_shape(tensor));
  const int64_t count = shape.count();
  std::vector<Out> values;
  switch (tensor.data_type()) {
    case onnx::TensorProto::FLOAT:
      CFT_TRY((copy_values<float>(tensor, tensor.float_data(), count, &values)));
      return values;
    case onnx::TensorProto::DOUBLE:
      CFT_TRY((copy_values<double>(tensor, tensor.double_data(), count, &values)));
      return values;
    case onnx::TensorProto::INT32:
      CFT_TRY((copy_values<int32_t>(tensor, tensor.int32_data(), count, &values)));
      return values;
    case onnx::TensorProto::BOOL:
      CFT_TRY((copy_values<uint8_t>(tensor, tensor.int32_data(), count, &values)));
      return values;
    case onnx::TensorProto::INT64:
      CFT_TRY((copy_values<int64_t>(tensor, tensor.int64_data(), count, &values)));
      return values;
    default:
      return invalid_argument(fmt::format(
          "constant {} has values of type {}; float, double, int32, int64 and bool are read",
          tensor.name(),
          onnx::TensorProto::DataType_IsValid(tensor.data_type())
              ? onnx::TensorProto::DataType_Name(onnx::TensorProto::DataType(tensor.data_type()))
              : std::to_string(tensor.data_type())));
  }
}

}  // namespace

const onnx::AttributeProto* OnnxNode::find(const char* name) const {
  for (const onnx::AttributeProto& attribute : proto_.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

int64_t OnnxNode::integer(const char* name, int64_t otherwise) const {
  const auto* attribute = find(name);
  return attribute ? attribute->i() : otherwise;
}

float OnnxNode::number(const char* name, float otherwise) const {
  const auto* attribute = find(name);
  return attribute ? attribute->f() : otherwise;
}

std::string OnnxNode::text(const char* name, const char* otherwise) const {
  const auto* attribute = find(name);
  return attribute ? attribute->s() : otherwise;
}

std::vector<int64_t> OnnxNode::integers(const char* name) const {
  const auto* attribute = find(name);
  if (!attribute) return {};
  return {attribute->ints().begin(), attribute->ints().end()};
}

OnnxReader::OnnxReader(int64_t opset, const onnx::GraphProto& graph) : opset_(opset) {
  net_.set_name(graph.name());
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    add_constant(tensor.name(), &tensor);
  }
  for (const onnx::ValueInfoProto& input : graph.input()) value_names_.take(input.name());
  for (const onnx::ValueInfoProto& output : graph.output()) numbers_.insert(output.name());
  for (const onnx::NodeProto& node : graph.node()) {
    for (int i = 0; i < node.input_size(); ++i) {
      used_.insert(node.input(i));
      if (i != 1 || node.op_type() != "Gather") numbers_.insert(node.input(i));
    }
    for (const std::string& output : node.output()) value_names_.take(output);
  }
  used_.insert(numbers_.begin(), numbers_.end());
}

void OnnxReader::add_constant(const std::string& name, const onnx::TensorProto* tensor) {
  constants_[name] = tensor;
}

Status OnnxReader::add_integers(const std::string& name, const Shape& shape,
                                const std::vector<int64_t>& values) {
  if (shape.count() != int64_t(values.size())) {
    return invalid_argument("the integers of " + name + " do not fit the shape " + shape.str());
  }
  if (values.size() > kMaxComputed) {
    return invalid_argument(fmt::format(
        "it makes a list of {} integers; only lists as short as shapes are computed here",
        values.size()));
  }
  onnx::TensorProto& tensor = computed_.emplace_back();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::INT64);
  for (int64_t dim : shape.dims()) tensor.add_dims(dim);
  tensor.mutable_int64_data()->Add(values.begin(), values.end());
  add_constant(name, &tensor);
  return {};
}

Status OnnxReader::add_number(const std::string& name, float value) {
  onnx::TensorProto& tensor = computed_.emplace_back();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_float_data(value);
  add_constant(name, &tensor);
  return {};
}

Result<const onnx::TensorProto*> OnnxReader::constant(const std::string& name) const {
  const auto found = constants_.find(name);
  if (found != constants_.end()) return found->second;
  return invalid_argument("input " + name + " must be a constant of the file");
}

Result<OnnxFloats> OnnxReader::floats(const std::string& name) const {
  CFT_ASSIGN(const onnx::TensorProto* tensor, constant(name));
  OnnxFloats floats;
  CFT_ASSIGN(floats.shape, tensor_shape(*tensor));
  CFT_ASSIGN(floats.values, tensor_values<float>(*tensor));
  return floats;
}

Result<std::vector<int64_t>> OnnxReader::integers(const std::string& name) const {
  CFT_ASSIGN(const onnx::TensorProto* tensor, constant(name));
  if (tensor->data_type() != onnx::TensorProto::INT64 &&
      tensor->data_type() != onnx::TensorProto::INT32) {
    return invalid_argument("constant " + name + " must hold integers");
  }
  return tensor_values<int64_t>(*tensor);
}

Result<Shape> OnnxReader::constant_shape(const std::string& name) const {
  CFT_ASSIGN(const onnx::TensorProto* tensor, constant(name));
  return tensor_shape(*tensor);
}

Result<Shape> OnnxReader::shape(const std::string& value) const {
  const auto found = values_.find(value);
  if (found != values_.end()) return found->second.shape;
  return invalid_argument(constants_.contains(value)
                              ? "input " + value +
                                    " is a constant; only a computed value is read here"
                              : "input " + value + " is made by no node before this one");
}

Status OnnxReader::add_input(const std::string& name, const Shape& shape, bool integers) {
  caffe::LayerParameter input;
  input.set_name(name);
  input.set_type("Input");
  input.add_top(name);
  caffe::BlobShape* dims = input.mutable_input_param()->add_shape();
  for (int64_t dim : shape.dims()) dims->add_dim(dim);
  if (integers) integers_.insert(name);
  return add(std::move(input));
}

void OnnxReader::set_integers(const std::string& value, bool integers) {
  if (integers) {
    integers_.insert(value);
  } else {
    integers_.erase(value);
  }
}

Status OnnxReader::alias(const std::string& name, const std::string& value) {
  if (const auto found = constants_.find(value); found != constants_.end()) {
    add_constant(name, found->second);
    return {};
  }
  CFT_TRY(shape(value).status());
  values_[name] = values_[value];
  set_integers(name, holds_integers(value));
  return {};
}

Status OnnxReader::name_output(const std::string& name) {
  CFT_TRY(shape(name).status());
  const std::string blob = values_[name].blob;
  if (blob == name) return {};
  caffe::LayerParameter copy;
  copy.set_name(name);
  copy.set_type("Split");
  copy.add_bottom(blob);
  copy.add_top(name);
  values_.erase(name);
  return add(std::move(copy));
}

caffe::LayerParameter OnnxReader::layer(const char* type, const OnnxNode& node) const {
  caffe::LayerParameter layer;
  layer.set_type(type);
  layer.set_name(node.proto().name().empty() ? node.output() : node.proto().name());
  layer.add_bottom(node.input(0));
  layer.add_top(node.output());
  return layer;
}

Result<LayerShapes> OnnxReader::shapes_of(const caffe::LayerParameter& layer) const {
  CFT_ASSIGN(const LayerType* type, find_layer_type(layer_types(), layer.type()));
  CFT_TRY(check_count("inputs", layer.bottom_size(), type->min_bottoms, type->max_bottoms));
  CFT_TRY(check_count("outputs", layer.top_size(), type->min_tops, type->max_tops));
  LayerShapes shapes;
  for (const std::string& bottom : layer.bottom()) {
    CFT_ASSIGN(Shape bottom_shape, shape(bottom));
    shapes.bottoms.push_back(std::move(bottom_shape));
  }
  shapes.tops.resize(size_t(layer.top_size()));
  CFT_TRY(type->create(layer)->shape(shapes));
  return shapes;
}

Status OnnxReader::add(caffe::LayerParameter layer) {
  layer.set_name(layer_names_.make(layer.name()));
  CFT_ASSIGN(const LayerShapes shapes, shapes_of(layer));
  const bool integers = layer.bottom_size() > 0 && holds_integers(layer.bottom(0));
  for (std::string& bottom : *layer.mutable_bottom()) bottom = values_[bottom].blob;
  if (layer.blobs_size() != int(shapes.params.size())) {
    return internal_error(fmt::format("a {} layer has {} parameters, not {}", layer.type(),
                                      shapes.params.size(), layer.blobs_size()));
  }
  for (int i = 0; i < layer.blobs_size(); ++i) {
    const Shape& expected = shapes.params[size_t(i)].shape;
    if (shape_equals(layer.blobs(i), expected)) continue;
    CFT_ASSIGN(const Shape given, blob_shape(layer.blobs(i)));
    return invalid_argument(
        fmt::format("its constant has shape {}; the input needs {}", given.str(), expected.str()));
  }
  for (int i = 0; i < layer.top_size(); ++i) {
    CFT_ASSIGN(const Shape top, checked_shape(shapes.tops[size_t(i)].dims()));
    const Value value{layer.top(i), top};
    if (!values_.emplace(layer.top(i), value).second) {
      return invalid_argument("two nodes make the value " + layer.top(i));
    }
    if (integers) integers_.insert(layer.top(i));
  }
  *net_.add_layer() = std::move(layer);
  return {};
}

Status OnnxReader::add_reshape(const OnnxNode& node, const std::string& bottom,
                               const std::string& top, const std::vector<int64_t>& dims) {
  caffe::LayerParameter reshape = layer("Reshape", node);
  if (top != node.output()) reshape.set_name(top);
  reshape.set_bottom(0, bottom);
  reshape.set_top(0, top);
  caffe::BlobShape* shape = reshape.mutable_reshape_param()->mutable_shape();
  for (int64_t dim : dims) shape->add_dim(dim);
  return add(std::move(reshape));
}

Result<std::string> OnnxReader::with_axes(const OnnxNode& node, const std::string& value,
                                          int axes) {
  CFT_ASSIGN(const Shape x, shape(value));
  if (x.axes() >= axes) return value;
  std::vector<int64_t> dims(size_t(axes - x.axes()), 1);
  dims.insert(dims.end(), x.dims().begin(), x.dims().end());
  if (x.axes() > 0) dims[size_t(axes - x.axes())] = -1;  // the batch may change
  const std::string inner = fresh(node.output());
  CFT_TRY(add_reshape(node, value, inner, dims));
  return inner;
}

}  // namespace cafetiere
