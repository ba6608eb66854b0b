// SPDX-License-Identifier: Apache-2.0
// Sums, products, powers: Power, Exp, Log, Eltwise, Scale and Bias, and ONNX's binary operators with
// a constant or between values.
#include <array>
#include <cmath>

#include "core/model/blob.h"
#include "core/onnx/families.h"

namespace cafetiere {
namespace {

using EltwiseOp = caffe::EltwiseParameter;

std::string affine(OnnxWriter& w, const std::string& x, float scale, float shift) {
  return w.plus(w.times(x, scale), shift);
}

Result<OnnxValues> power(const ExportLayer& layer, OnnxWriter& w) {
  const caffe::PowerParameter& p = layer.param.power_param();
  const std::string line = affine(w, layer.bottom(), p.scale(), p.shift());
  return OnnxValues{p.power() == 1 ? line : w.node("Pow", {line, w.scalar(p.power())})};
}

float log_of_base(float base) { return base == -1 ? 1 : std::log(base); }

Result<OnnxValues> exp(const ExportLayer& layer, OnnxWriter& w) {
  const caffe::ExpParameter& p = layer.param.exp_param();
  const float rate = log_of_base(p.base());
  return OnnxValues{w.node("Exp", {affine(w, layer.bottom(), rate * p.scale(), rate * p.shift())})};
}

Result<OnnxValues> log(const ExportLayer& layer, OnnxWriter& w) {
  const caffe::LogParameter& p = layer.param.log_param();
  const std::string line = affine(w, layer.bottom(), p.scale(), p.shift());
  return OnnxValues{w.times(w.node("Log", {line}), 1 / log_of_base(p.base()))};
}

Result<OnnxValues> eltwise(const ExportLayer& layer, OnnxWriter& w) {
  const EltwiseOp& p = layer.param.eltwise_param();
  if (p.operation() == EltwiseOp::MAX) return OnnxValues{w.node("Max", layer.bottoms)};
  const char* op = p.operation() == EltwiseOp::PROD ? "Mul" : "Add";
  std::string total;
  for (int i = 0; i < int(layer.bottoms.size()); ++i) {
    const float coeff = i < p.coeff_size() ? p.coeff(i) : 1;
    const std::string term = w.times(layer.bottoms[size_t(i)], coeff);
    total = i == 0 ? term : w.node(op, {total, term});
  }
  return OnnxValues{total};
}

/// The shape that lets an operand of `shape`, whose first axis is `axis` of x, meet all of x.
Shape aligned(const Shape& shape, int axis, const Shape& x) {
  std::vector<int64_t> dims = shape.dims();
  if (!dims.empty()) dims.resize(size_t(x.axes() - axis), 1);
  return Shape(std::move(dims));
}

/// The factor or summand of Scale and Bias: the second bottom or the first parameter.
std::string operand(const ExportLayer& layer, OnnxWriter& w, int axis) {
  const Shape& x = layer.bottom_shape();
  if (layer.bottoms.size() == 1) {
    return layer.constant(w, 0, aligned(layer.param_shapes[0], axis, x));
  }
  return w.reshape(layer.bottoms[1], aligned(layer.bottom_shapes[1], axis, x));
}

Result<OnnxValues> scale(const ExportLayer& layer, OnnxWriter& w) {
  const Shape& x = layer.bottom_shape();
  CFT_ASSIGN(const int axis, x.axis(layer.param.scale_param().axis()));
  const std::string y = w.node("Mul", {layer.bottom(), operand(layer, w, axis)});
  if (!layer.param.scale_param().bias_term()) return OnnxValues{y};
  const size_t last = layer.params.size() - 1;
  const Shape shape = aligned(layer.param_shapes[last], axis, x);
  return OnnxValues{w.node("Add", {y, layer.constant(w, last, shape)})};
}

Result<OnnxValues> bias(const ExportLayer& layer, OnnxWriter& w) {
  CFT_ASSIGN(const int axis, layer.bottom_shape().axis(layer.param.bias_param().axis()));
  return OnnxValues{w.node("Add", {layer.bottom(), operand(layer, w, axis)})};
}

/// A factor for each image and channel times the second bottom, plus the third.
Result<OnnxValues> axpy(const ExportLayer& layer, OnnxWriter& w) {
  const Shape& x = layer.bottom_shapes[1];
  std::vector<int64_t> dims(size_t(x.axes()), 1);
  dims[0] = x[0], dims[1] = x[1];
  const std::string factor = layer.bottom_shape().axes() == x.axes()
                                 ? layer.bottom()
                                 : w.reshape(layer.bottom(), Shape(dims));
  const std::string product = w.node("Mul", {layer.bottoms[1], factor});
  return OnnxValues{w.node("Add", {product, layer.bottoms[2]})};
}

constexpr Exporter kArithmeticExporters[] = {
    {"Axpy", axpy}, {"Bias", bias},   {"Eltwise", eltwise}, {"Exp", exp},
    {"Log", log},   {"Power", power}, {"Scale", scale},
};

/// Reads y = (scale x + shift)^power.
Status add_power(const OnnxNode& node, OnnxReader& r, const std::string& x, float scale,
                 float shift, float power) {
  caffe::LayerParameter layer = r.layer("Power", node);
  layer.set_bottom(0, x);
  layer.mutable_power_param()->set_scale(scale);
  layer.mutable_power_param()->set_shift(shift);
  layer.mutable_power_param()->set_power(power);
  return r.add(std::move(layer));
}

/// Where an operand of `shape` meets x when both are aligned at their last axes: the first axis, and
/// the operand's shape without the ones around it.
struct Meeting {
  int axis = 0;
  Shape shape;
};

/// x has as many axes or more. With `keeps_first`, a first axis of 1 is part of that shape.
Result<Meeting> meet(const Shape& shape, const Shape& x, bool keeps_first = false) {
  const int lead = x.axes() - shape.axes();
  int begin = 0, end = shape.axes();
  while (begin < end && shape[begin] == 1 && !keeps_first) ++begin;
  while (end > begin + int(keeps_first) && shape[end - 1] == 1) --end;
  for (int i = begin; i < end; ++i) {
    if (shape[i] == x[i + lead]) continue;
    return invalid_argument("an operand of shape " + shape.str() + " meets x of shape " + x.str() +
                            ": it must have a run of x's axes and ones");
  }
  return Meeting{begin + lead, Shape({shape.dims().begin() + begin, shape.dims().begin() + end})};
}

/// x (input `at`) and a constant: Power for one number, else Scale or Bias.
template <class Change>
Status add_constant(const OnnxNode& node, OnnxReader& r, int at, bool product,
                    const Change& change) {
  CFT_ASSIGN(OnnxFloats c, r.floats(node.input(1 - at)));
  CFT_ASSIGN(const std::string bottom, r.with_axes(node, node.input(at), c.shape.axes()));
  CFT_ASSIGN(const Shape x, r.shape(bottom));
  for (float& value : c.values) value = change(value);
  if (c.values.size() == 1) {
    return add_power(node, r, bottom, product ? c.values[0] : 1, product ? 0 : c.values[0], 1);
  }
  CFT_ASSIGN(const Meeting meeting, meet(c.shape, x));
  caffe::LayerParameter layer = r.layer(product ? "Scale" : "Bias", node);
  layer.set_bottom(0, bottom);
  const auto place = [&](auto* p) {
    p->set_axis(meeting.axis);
    p->set_num_axes(meeting.shape.axes());
  };
  if (product) {
    place(layer.mutable_scale_param());
  } else {
    place(layer.mutable_bias_param());
  }
  floats_to_blob(c.values, meeting.shape, layer.add_blobs());
  return r.add(std::move(layer));
}

Status add_eltwise(const OnnxNode& node, OnnxReader& r, EltwiseOp::EltwiseOp op,
                   const std::vector<float>& coeff = {}) {
  if (node.inputs() == 1) return r.alias(node.output(), node.input(0));
  caffe::LayerParameter layer = r.layer("Eltwise", node);
  for (int i = 1; i < node.inputs(); ++i) layer.add_bottom(node.input(i));
  layer.mutable_eltwise_param()->set_operation(op);
  for (float c : coeff) layer.mutable_eltwise_param()->add_coeff(c);
  return r.add(std::move(layer));
}

/// Two values of one shape; or one that lacks the other's last axes, or has ones there, as the gate of
/// a squeeze-and-excitation: Scale and Bias with two bottoms.
Status add_pair(const OnnxNode& node, OnnxReader& r, bool product,
                std::array<std::string, 2> pair) {
  CFT_ASSIGN(Shape a, r.shape(pair[0]));
  CFT_ASSIGN(Shape b, r.shape(pair[1]));
  // The larger one is the first bottom, whose axes the layer's top has.
  if (a.axes() < b.axes() && a.count() > b.count()) {
    CFT_ASSIGN(pair[0], r.with_axes(node, pair[0], b.axes()));
    CFT_ASSIGN(a, r.shape(pair[0]));
  } else if (b.axes() < a.axes() && b.count() > a.count()) {
    CFT_ASSIGN(pair[1], r.with_axes(node, pair[1], a.axes()));
    CFT_ASSIGN(b, r.shape(pair[1]));
  }
  if (a == b) {
    caffe::LayerParameter layer = r.layer("Eltwise", node);
    layer.mutable_bottom()->Assign(pair.begin(), pair.end());
    layer.mutable_eltwise_param()->set_operation(product ? EltwiseOp::PROD : EltwiseOp::SUM);
    return r.add(std::move(layer));
  }
  const bool first = a.count() > b.count() || (a.count() == b.count() && a.axes() >= b.axes());
  const size_t large = first ? 0 : 1;
  const Shape &x = large == 0 ? a : b, &y = large == 0 ? b : a;
  // A batch, even one of 1, stays and is left to the net, so that it may change.
  const bool has_batch = x.axes() > 0 && y.axes() == x.axes() && y[0] == x[0];
  Result<Meeting> with_batch = meet(y, x, has_batch);
  CFT_ASSIGN(const Meeting meeting,
             has_batch && !with_batch.ok() ? meet(y, x) : std::move(with_batch));
  const std::string inner = r.fresh(node.output());
  std::vector<int64_t> dims = meeting.shape.dims();
  if (has_batch && meeting.axis == 0) dims[0] = 0;
  CFT_TRY(r.add_reshape(node, pair[1 - large], inner, dims));
  caffe::LayerParameter layer = r.layer(product ? "Scale" : "Bias", node);
  layer.set_bottom(0, pair[large]);
  layer.add_bottom(inner);
  if (product) {
    layer.mutable_scale_param()->set_axis(meeting.axis);
  } else {
    layer.mutable_bias_param()->set_axis(meeting.axis);
  }
  return r.add(std::move(layer));
}

/// a - b of different shapes as a + (-b), a / b as a b^-1.
Status add_opposite_pair(const OnnxNode& node, OnnxReader& r, bool product) {
  CFT_ASSIGN(const Shape a, r.shape(node.input(0)));
  CFT_ASSIGN(const Shape b, r.shape(node.input(1)));
  if (!product && a == b) return add_eltwise(node, r, EltwiseOp::SUM, {1, -1});
  const std::string inner = r.fresh(node.output());
  caffe::LayerParameter opposite = r.layer("Power", node);
  opposite.set_name(inner);
  opposite.set_bottom(0, node.input(1));
  opposite.set_top(0, inner);
  if (product) {
    opposite.mutable_power_param()->set_power(-1);
  } else {
    opposite.mutable_power_param()->set_scale(-1);
  }
  CFT_TRY(r.add(std::move(opposite)));
  return add_pair(node, r, product, {node.input(0), inner});
}

Status two_inputs(const OnnxNode& node) {
  return node.inputs() == 2 && node.has(1) ? Status() : invalid_argument("needs two inputs");
}

template <bool kProduct>
Status read_commuting(const OnnxNode& node, OnnxReader& r) {
  CFT_TRY(two_inputs(node));
  const auto keep = [](float c) { return c; };
  for (int at : {0, 1}) {
    if (r.is_constant(node.input(1 - at))) return add_constant(node, r, at, kProduct, keep);
  }
  return add_pair(node, r, kProduct, {node.input(0), node.input(1)});
}

/// A scalar minus or over x becomes a Power; other constants may only come second.
template <bool kProduct>
Status read_opposite(const OnnxNode& node, OnnxReader& r) {
  CFT_TRY(two_inputs(node));
  if (kProduct && (r.holds_integers(node.input(0)) || r.holds_integers(node.input(1)))) {
    return cuts_integers("a quotient of integers");
  }
  if (r.is_constant(node.input(1))) {
    return add_constant(node, r, 0, kProduct, [](float c) { return kProduct ? 1 / c : -c; });
  }
  if (r.is_constant(node.input(0))) {
    CFT_ASSIGN(const OnnxFloats c, r.floats(node.input(0)));
    if (c.values.size() != 1) return invalid_argument("a constant in front must be one number");
    CFT_ASSIGN(const std::string x, r.with_axes(node, node.input(1), c.shape.axes()));
    if (!kProduct) return add_power(node, r, x, -1, c.values[0], 1);
    if (c.values[0] == 0) return invalid_argument("0 / x has no layer");
    return add_power(node, r, x, 1 / c.values[0], 0, -1);
  }
  return add_opposite_pair(node, r, kProduct);
}

Status read_pow(const OnnxNode& node, OnnxReader& r) {
  CFT_TRY(two_inputs(node));
  CFT_ASSIGN(const OnnxFloats c, r.floats(node.input(1)));
  if (c.values.size() != 1) return invalid_argument("the exponent must be one number");
  if (r.holds_integers(node.input(0)) &&
      !(c.values[0] >= 0 && c.values[0] == std::floor(c.values[0]))) {
    return cuts_integers("such a power of integers");
  }
  CFT_ASSIGN(const std::string x, r.with_axes(node, node.input(0), c.shape.axes()));
  return add_power(node, r, x, 1, 0, c.values[0]);
}

Status read_sqrt(const OnnxNode& node, OnnxReader& r) {
  return add_power(node, r, node.input(0), 1, 0, 0.5F);
}
Status read_neg(const OnnxNode& node, OnnxReader& r) {
  return add_power(node, r, node.input(0), -1, 0, 1);
}
Status read_reciprocal(const OnnxNode& node, OnnxReader& r) {
  return add_power(node, r, node.input(0), 1, 0, -1);
}
Status read_exp(const OnnxNode& node, OnnxReader& r) { return r.add(r.layer("Exp", node)); }
Status read_log(const OnnxNode& node, OnnxReader& r) { return r.add(r.layer("Log", node)); }
Status read_sum(const OnnxNode& node, OnnxReader& r) {
  return add_eltwise(node, r, EltwiseOp::SUM);
}
Status read_max(const OnnxNode& node, OnnxReader& r) {
  return add_eltwise(node, r, EltwiseOp::MAX);
}

constexpr Importer kArithmeticImporters[] = {
    {"Add", read_commuting<false>},
    {"Div", read_opposite<true>},
    {"Exp", read_exp},
    {"Log", read_log},
    {"Max", read_max},
    {"Mul", read_commuting<true>},
    {"Neg", read_neg},
    {"Pow", read_pow},
    {"Reciprocal", read_reciprocal},
    {"Sqrt", read_sqrt},
    {"Sub", read_opposite<false>},
    {"Sum", read_sum},
};

}  // namespace

extern constinit const OnnxFamily onnx_arithmetic{kArithmeticExporters, kArithmeticImporters};

}  // namespace cafetiere
