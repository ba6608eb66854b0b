// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/open_rows.h"

#include <fmt/format.h>

#include <cstring>
#include <set>

namespace cafetiere {
namespace {

Status fixed(const std::string& what) {
  return invalid_argument(fmt::format(
      "{} holds the number of rows: such a layer has an ONNX form only for a fixed one; take it "
      "out "
      "of the net, or export without the encoding, with a shape for each top of TableData",
      what));
}

/// Sizes that grow with the rows bear their name, or none.
void open_sizes(const onnx::ValueInfoProto& more, onnx::ValueInfoProto* few) {
  auto* shape = few->mutable_type()->mutable_tensor_type()->mutable_shape();
  for (int i = 0; i < shape->dim_size(); ++i) {
    const int64_t size = shape->dim(i).dim_value();
    if (size == more.type().tensor_type().shape().dim(i).dim_value()) continue;
    shape->mutable_dim(i)->clear_dim_value();
    if (size == kFewRows) shape->mutable_dim(i)->set_dim_param("rows");
  }
}

/// A shape of which one size grows with the rows says -1 there: "what is left".
Status open_shape(const onnx::TensorProto& more, onnx::TensorProto* few) {
  constexpr size_t kBytes = sizeof(int64_t);
  const size_t count = few->raw_data().size() / kBytes;
  if (few->data_type() != onnx::TensorProto::INT64 || few->dims_size() != 1 ||
      more.raw_data().size() != few->raw_data().size()) {
    return fixed("constant '" + few->name() + "'");
  }
  bool opened = false;
  for (size_t i = 0; i < count; ++i) {
    int64_t size, other;
    std::memcpy(&size, few->raw_data().data() + i * kBytes, kBytes);
    std::memcpy(&other, more.raw_data().data() + i * kBytes, kBytes);
    if (size == other) continue;
    if (opened || size * kMoreRows != other * kFewRows) return fixed("'" + few->name() + "'");
    constexpr int64_t kRest = -1;
    std::memcpy(few->mutable_raw_data()->data() + i * kBytes, &kRest, kBytes);
    opened = true;
  }
  return {};
}

bool equal(const google::protobuf::MessageLite& a, const google::protobuf::MessageLite& b) {
  return a.SerializeAsString() == b.SerializeAsString();
}

}  // namespace

Status open_rows(const onnx::GraphProto& more, onnx::GraphProto* few) {
  std::set<std::string> shapes;  // that a Reshape reads
  if (few->node_size() != more.node_size()) return fixed("the number of nodes");
  for (int i = 0; i < few->node_size(); ++i) {
    const onnx::NodeProto& node = few->node(i);
    if (!equal(node, more.node(i))) return fixed("node '" + node.name() + "'");
    if (node.op_type() == "Reshape") shapes.insert(node.input(1));
  }
  for (int i = 0; i < few->initializer_size(); ++i) {
    onnx::TensorProto* constant = few->mutable_initializer(i);
    if (equal(*constant, more.initializer(i))) continue;
    if (!shapes.contains(constant->name())) return fixed("constant '" + constant->name() + "'");
    CFT_TRY(open_shape(more.initializer(i), constant));
  }
  for (int i = 0; i < few->input_size(); ++i) {
    open_sizes(more.input(i), few->mutable_input(i));
  }
  for (int i = 0; i < few->output_size(); ++i) {
    open_sizes(more.output(i), few->mutable_output(i));
  }
  return {};
}

}  // namespace cafetiere
