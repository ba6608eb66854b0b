// SPDX-License-Identifier: Apache-2.0
// Reduction and ArgMax.
#include <algorithm>

#include "core/onnx/families.h"

namespace cafetiere {
namespace {

using ReduceParam = caffe::ReductionParameter;

Result<OnnxValues> reduction(const ExportLayer& layer, OnnxWriter& w) {
  const ReduceParam& p = layer.param.reduction_param();
  std::vector<int64_t> axes;
  for (int axis = layer.top_shape().axes(); axis < layer.bottom_shape().axes(); ++axis) {
    axes.push_back(axis);
  }
  const OnnxAttribute drop{"keepdims", int64_t(0)};
  std::string y;
  if (p.operation() == ReduceParam::SUM) {  // the only one whose axes are an input in this opset
    y = w.node("ReduceSum", {layer.bottom(), w.integers(axes)}, {drop});
  } else {
    const char* op = p.operation() == ReduceParam::ASUM    ? "ReduceL1"
                     : p.operation() == ReduceParam::SUMSQ ? "ReduceSumSquare"
                                                           : "ReduceMean";
    y = w.node(op, {layer.bottom()}, {{"axes", axes}, drop});
  }
  return OnnxValues{w.times(y, p.coeff())};
}

/// TopK, whose indices become numbers. Of equal scores ONNX takes the first, Caffe the last.
Result<OnnxValues> argmax(const ExportLayer& layer, OnnxWriter& w) {
  const caffe::ArgMaxParameter& p = layer.param.argmax_param();
  const Shape& x = layer.bottom_shape();
  int axis = 1;
  std::string scores = layer.bottom();
  if (p.has_axis()) {
    CFT_ASSIGN(axis, x.axis(p.axis()));
  } else {
    scores = w.reshape(scores, {x[0], x.count(1)});
  }
  const OnnxValues best =
      w.nodes("TopK", {scores, w.integers({int64_t(p.top_k())})}, 2, {{"axis", int64_t(axis)}});
  const auto index = [&] {
    return w.node("Cast", {best[1]}, {{"to", int64_t(onnx::TensorProto::FLOAT)}});
  };
  if (p.has_axis()) return OnnxValues{p.out_max_val() ? best[0] : index()};
  const std::string rows =
      p.out_max_val() ? w.node("Concat", {index(), best[0]}, {{"axis", int64_t(1)}}) : index();
  return OnnxValues{w.reshape(rows, layer.top_shape())};
}

constexpr Exporter kReductionExporters[] = {{"ArgMax", argmax}, {"Reduction", reduction}};

/// A layer's only top under a name of its own, then a Reshape that makes the node's output of it:
/// `dims`, where 0 stays.
Status add_reshaped(const OnnxNode& node, OnnxReader& r, caffe::LayerParameter layer,
                    const std::vector<int64_t>& dims) {
  const std::string inner = r.fresh(node.output());
  layer.set_top(0, inner);
  CFT_TRY(r.add(std::move(layer)));
  return r.add_reshape(node, inner, node.output(), dims);
}

/// A Reduction over the last axes; those that stay as ones are put back by a Reshape.
Status read(const OnnxNode& node, OnnxReader& r, ReduceParam::ReductionOp op) {
  CFT_ASSIGN(const Shape x, r.shape(node.input(0)));
  std::vector<int64_t> axes = node.integers("axes");
  if (node.has(1)) {
    CFT_ASSIGN(axes, r.integers(node.input(1)));
  }
  if (axes.empty() && node.integer("noop_with_empty_axes", 0) != 0) {
    return r.alias(node.output(), node.input(0));
  }
  std::vector<bool> reduced(size_t(x.axes()), axes.empty());
  for (int64_t axis : axes) {
    CFT_ASSIGN(const int at, x.axis(int(std::clamp<int64_t>(axis, INT32_MIN, INT32_MAX))));
    reduced[size_t(at)] = true;
  }
  const auto first = std::find(reduced.begin(), reduced.end(), true);
  if (first == reduced.end() || std::count(first, reduced.end(), false) > 0) {
    return invalid_argument("only a reduction over the last axes has a layer; x is " + x.str());
  }
  if (op == ReduceParam::MEAN && r.holds_integers(node.input(0))) {
    return cuts_integers("a mean of integers");
  }
  const bool keeps = node.integer("keepdims", 1) != 0;
  caffe::LayerParameter layer = r.layer("Reduction", node);
  layer.mutable_reduction_param()->set_operation(op);
  layer.mutable_reduction_param()->set_axis(int32_t(first - reduced.begin()));
  if (!keeps) return r.add(std::move(layer));
  std::vector<int64_t> dims(reduced.size(), 1);
  std::fill(dims.begin(), dims.begin() + (first - reduced.begin()), 0);
  return add_reshaped(node, r, std::move(layer), dims);
}

template <ReduceParam::ReductionOp kOp>
Status read_reduction(const OnnxNode& node, OnnxReader& r) {
  return read(node, r, kOp);
}

/// An ArgMax that gives the `k` largest values along an axis, or where they are.
Result<caffe::LayerParameter> argmax_layer(const OnnxNode& node, const OnnxReader& r, int64_t axis,
                                           int64_t k, bool values) {
  CFT_ASSIGN(const Shape x, r.shape(node.input(0)));
  CFT_ASSIGN(const int at, x.axis(int(std::clamp<int64_t>(axis, INT32_MIN, INT32_MAX))));
  if (k < 1 || k > x[at]) return invalid_argument("k is out of range for x of shape " + x.str());
  caffe::LayerParameter layer = r.layer("ArgMax", node);
  layer.mutable_argmax_param()->set_axis(at);
  layer.mutable_argmax_param()->set_top_k(uint32_t(k));
  layer.mutable_argmax_param()->set_out_max_val(values);
  return layer;
}

/// A layer for each of its two outputs that is used.
Status read_top_k(const OnnxNode& node, OnnxReader& r) {
  if (!node.has(1)) return invalid_argument("needs k");
  CFT_ASSIGN(const std::vector<int64_t> k, r.integers(node.input(1)));
  if (k.size() != 1) return invalid_argument("k must be one number");
  if (!node.integer("largest", 1)) return invalid_argument("only the largest have a layer");
  for (int i = 0; i < std::min(node.outputs(), 2); ++i) {
    if (!r.is_used(node.output(i))) continue;
    CFT_ASSIGN(caffe::LayerParameter layer,
               argmax_layer(node, r, node.integer("axis", -1), k[0], i == 0));
    layer.set_top(0, node.output(i));
    CFT_TRY(r.add(std::move(layer)));
    if (i == 1) r.set_integers(node.output(i), true);
  }
  return {};
}

Status read_argmax(const OnnxNode& node, OnnxReader& r) {
  CFT_ASSIGN(caffe::LayerParameter layer, argmax_layer(node, r, node.integer("axis", 0), 1, false));
  r.set_integers(node.output(), true);
  if (node.integer("keepdims", 1)) return r.add(std::move(layer));
  CFT_ASSIGN(const Shape x, r.shape(node.input(0)));
  std::vector<int64_t> dims = x.dims();
  dims.erase(dims.begin() + layer.argmax_param().axis());
  if (layer.argmax_param().axis() > 0) dims[0] = 0;  // the batch may change
  return add_reshaped(node, r, std::move(layer), dims);
}

constexpr Importer kReductionImporters[] = {
    {"ArgMax", read_argmax},
    {"ReduceL1", read_reduction<ReduceParam::ASUM>},
    {"ReduceMean", read_reduction<ReduceParam::MEAN>},
    {"ReduceSum", read_reduction<ReduceParam::SUM>},
    {"ReduceSumSquare", read_reduction<ReduceParam::SUMSQ>},
    {"TopK", read_top_k},
};

}  // namespace

extern constinit const OnnxFamily onnx_reduction{kReductionExporters, kReductionImporters};

}  // namespace cafetiere
