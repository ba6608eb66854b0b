// SPDX-License-Identifier: Apache-2.0
// Constants, and shapes, which are known when a model is read. Casts change nothing: a net has floats.
#include <algorithm>

#include "core/onnx/families.h"

namespace cafetiere {
namespace {

Status read_constant(const OnnxNode& node, OnnxReader& r) {
  if (const auto* value = node.find("value")) {
    r.add_constant(node.output(), &value->t());
    return {};
  }
  if (node.has_attribute("value_float")) {
    return r.add_number(node.output(), node.number("value_float", 0));
  }
  if (node.has_attribute("value_int")) {
    return r.add_integers(node.output(), {}, {node.integer("value_int", 0)});
  }
  if (node.has_attribute("value_ints")) {
    const std::vector<int64_t> values = node.integers("value_ints");
    return r.add_integers(node.output(), {int64_t(values.size())}, values);
  }
  return invalid_argument("only a tensor, a float and integers are read");
}

Status read_shape(const OnnxNode& node, OnnxReader& r) {
  CFT_ASSIGN(const Shape x, r.shape(node.input(0)));
  const int64_t rank = x.axes();
  const auto within = [rank](int64_t i) {
    return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank);
  };
  const int64_t begin = within(node.integer("start", 0));
  const int64_t end = std::max(begin, within(node.integer("end", rank)));
  const std::vector<int64_t> dims(x.dims().begin() + begin, x.dims().begin() + end);
  return r.add_integers(node.output(), {end - begin}, dims);
}

/// To integers only what holds integers, and what a Gather reads as its index, which its layer
/// truncates: elsewhere a cast does.
Status read_cast(const OnnxNode& node, OnnxReader& r) {
  const int64_t to = node.integer("to", 0);
  const bool floats = to == onnx::TensorProto::FLOAT || to == onnx::TensorProto::DOUBLE;
  const bool integers = to == onnx::TensorProto::INT64 || to == onnx::TensorProto::INT32;
  if (!floats && !integers) return invalid_argument("a cast to this type has no layer");
  if (integers && !r.is_constant(node.input(0)) && !r.holds_integers(node.input(0)) &&
      !r.is_index(node.output())) {
    return invalid_argument("a cast to integers has no layer");
  }
  CFT_TRY(r.alias(node.output(), node.input(0)));
  r.set_integers(node.output(), integers && !r.is_constant(node.input(0)));
  return {};
}

constexpr Importer kConstantsImporters[] = {
    {"Cast", read_cast}, {"Constant", read_constant}, {"Shape", read_shape}};

}  // namespace

extern constinit const OnnxFamily onnx_constants{{}, kConstantsImporters};

}  // namespace cafetiere
