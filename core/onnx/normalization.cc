// SPDX-License-Identifier: Apache-2.0
// Normalisations: BatchNorm, LayerNorm, GroupNorm, MVN, LRN and Softmax.
#include <limits>

#include "core/model/blob.h"
#include "core/onnx/families.h"

namespace cafetiere {
namespace {

Result<OnnxValues> batch_norm(const ExportLayer& layer, OnnxWriter& w) {
  const caffe::BatchNormParameter& p = layer.param.batch_norm_param();
  if (p.has_use_global_stats() && !p.use_global_stats()) {
    return invalid_argument(
        "use_global_stats: false normalises by the batch; ONNX has no such form");
  }
  const float weight = layer.params[2][0], factor = weight == 0 ? 0 : 1 / weight;
  const Shape channels = layer.param_shapes[0];
  const auto scaled = [&](size_t i) {
    std::vector<float> values(layer.params[i].begin(), layer.params[i].end());
    for (float& value : values) value *= factor;
    return w.floats(channels, values);
  };
  const bool scales = layer.params.size() > 3;
  const OnnxValues inputs{layer.bottom(), scales ? layer.constant(w, 3) : w.filled(channels, 1),
                          scales ? layer.constant(w, 4) : w.filled(channels, 0), scaled(0),
                          scaled(1)};
  return OnnxValues{w.node("BatchNormalization", inputs, {{"epsilon", p.eps()}})};
}

/// Both layers of this name: with statistics of their own, or scale and shift alone.
Result<OnnxValues> bn(const ExportLayer& layer, OnnxWriter& w) {
  const caffe::BNParameter& p = layer.param.bn_param();
  if (layer.params.size() > 2) {
    const Shape channels{layer.param_shapes[0].count()};
    OnnxValues inputs{layer.bottom()};
    for (size_t i = 0; i < 4; ++i) inputs.push_back(layer.constant(w, i, channels));
    return OnnxValues{w.node("BatchNormalization", inputs, {{"epsilon", p.eps()}})};
  }
  if (p.bn_mode() != caffe::BNParameter::INFERENCE) {
    return invalid_argument("bn_mode: LEARN normalises by the batch; ONNX has no such form");
  }
  std::vector<int64_t> channels(size_t(layer.bottom_shape().axes() - 1), 1);
  channels[0] = layer.bottom_shape()[1];
  const std::string scale = layer.constant(w, 0, Shape(channels));
  const std::string scaled = w.node("Mul", {layer.bottom(), scale});
  return OnnxValues{w.node("Add", {scaled, layer.constant(w, 1, Shape(channels))})};
}

/// Normalize of happynear's fork: each pixel over sqrt(sum of squares + 1e-6), or over the sum of
/// absolute values + 1e-6. A second top holds these norms.
OnnxValues pixel_normalize(const ExportLayer& layer, OnnxWriter& w) {
  const bool l1 = layer.param.normalize_param().normalize_type() == "L1";
  const std::string sum = w.node(l1 ? "ReduceL1" : "ReduceSumSquare", {layer.bottom()},
                                 {{"axes", std::vector<int64_t>{1}}});
  std::string norm = w.plus(sum, 1e-6F);
  if (!l1) norm = w.node("Sqrt", {norm});
  OnnxValues tops{w.node("Div", {layer.bottom(), norm})};
  if (layer.top_shapes.size() > 1) tops.push_back(norm);
  return tops;
}

/// x / sqrt(sum of squares + eps), times scale.
Result<OnnxValues> normalize(const ExportLayer& layer, OnnxWriter& w) {
  if (layer.param.has_normalize_param()) return pixel_normalize(layer, w);
  const caffe::NormalizeParameter& p = layer.param.norm_param();
  const Shape& x = layer.bottom_shape();
  std::vector<int64_t> axes{1};
  for (int axis = 2; axis < x.axes() && p.across_spatial(); ++axis) axes.push_back(axis);
  const std::string squares = w.node("Mul", {layer.bottom(), layer.bottom()});
  const std::string sum = w.node("ReduceSum", {squares, w.integers(axes)});
  const std::string norm = w.node("Sqrt", {w.node("Add", {sum, w.scalar(p.eps())})});
  const std::string y = w.node("Div", {layer.bottom(), norm});
  std::string scale = layer.constant(w, 0);
  if (!p.channel_shared() && x.axes() > 2) {
    std::vector<int64_t> channels(size_t(x.axes() - 1), 1);
    channels[0] = x[1];
    scale = w.reshape(scale, Shape(channels));
  }
  return OnnxValues{w.node("Mul", {y, scale})};
}

Result<OnnxValues> layer_norm(const ExportLayer& layer, OnnxWriter& w) {
  const caffe::LayerNormParameter& p = layer.param.layer_norm_param();
  const std::vector<int64_t>& dims = layer.bottom_shape().dims();
  CFT_ASSIGN(const int axis, layer.bottom_shape().axis(p.axis()));
  OnnxValues inputs{layer.bottom()};
  if (p.scale_bias()) {
    inputs.insert(inputs.end(), {layer.constant(w, 0), layer.constant(w, 1)});
  } else {
    inputs.push_back(w.filled(Shape({dims.begin() + axis, dims.end()}), 1));
  }
  return OnnxValues{
      w.node("LayerNormalization", inputs, {{"axis", int64_t(axis)}, {"epsilon", p.eps()}})};
}

/// Groups as the channels of an InstanceNormalization.
Result<OnnxValues> group_norm(const ExportLayer& layer, OnnxWriter& w) {
  const caffe::GroupNormParameter& p = layer.param.group_norm_param();
  const Shape& x = layer.bottom_shape();
  const Shape groups{p.group()};
  const std::string rows = w.reshape(layer.bottom(), {x[0], p.group(), x.count(1) / p.group()});
  const std::string normal =
      w.node("InstanceNormalization", {rows, w.filled(groups, 1), w.filled(groups, 0)},
             {{"epsilon", p.eps()}});
  const std::string y = w.reshape(normal, x);
  if (!p.scale_bias()) return OnnxValues{y};
  std::vector<int64_t> channels(size_t(x.axes() - 1), 1);
  channels[0] = x[1];
  const std::string scaled = w.node("Mul", {y, layer.constant(w, 0, Shape(channels))});
  return OnnxValues{w.node("Add", {scaled, layer.constant(w, 1, Shape(channels))})};
}

/// (x - mean) / (deviation + eps).
Result<OnnxValues> mvn(const ExportLayer& layer, OnnxWriter& w) {
  const caffe::MVNParameter& p = layer.param.mvn_param();
  std::vector<int64_t> axes{2, 3};
  if (p.across_channels()) axes = {1, 2, 3};
  const std::string x = layer.bottom_shape() == layer.top_shape()
                            ? layer.bottom()
                            : w.reshape(layer.bottom(), layer.top_shape());
  const std::string centred = w.node("Sub", {x, w.node("ReduceMean", {x}, {{"axes", axes}})});
  if (!p.normalize_variance()) return OnnxValues{centred};
  const std::string square = w.node("Mul", {centred, centred});
  const std::string deviation = w.node("Sqrt", {w.node("ReduceMean", {square}, {{"axes", axes}})});
  return OnnxValues{w.node("Div", {centred, w.plus(deviation, p.eps())})};
}

/// Within a channel: x (1 + alpha * mean of x^2 over the window)^-beta, the pad counting.
std::string lrn_within(const ExportLayer& layer, OnnxWriter& w) {
  const caffe::LRNParameter& p = layer.param.lrn_param();
  const std::string& x = layer.bottom();
  const int64_t size = p.local_size(), pad = size / 2;
  const std::string mean = w.node("AveragePool", {w.node("Mul", {x, x})},
                                  {{"kernel_shape", std::vector<int64_t>(2, size)},
                                   {"pads", std::vector<int64_t>(4, pad)},
                                   {"count_include_pad", int64_t(1)}});
  const std::string scale = w.plus(w.times(mean, p.alpha()), 1);
  return w.node("Mul", {x, w.node("Pow", {scale, w.scalar(-p.beta())})});
}

Result<OnnxValues> lrn(const ExportLayer& layer, OnnxWriter& w) {
  const caffe::LRNParameter& p = layer.param.lrn_param();
  if (p.norm_region() == caffe::LRNParameter::WITHIN_CHANNEL) {
    return OnnxValues{lrn_within(layer, w)};
  }
  return OnnxValues{w.node("LRN", {layer.bottom()},
                           {{"size", int64_t(p.local_size())},
                            {"alpha", p.alpha()},
                            {"beta", p.beta()},
                            {"bias", p.k()}})};
}

Result<OnnxValues> softmax(const ExportLayer& layer, OnnxWriter& w) {
  const int64_t axis = layer.param.softmax_param().axis();
  return OnnxValues{w.node("Softmax", {layer.bottom()}, {{"axis", axis}})};
}

constexpr Exporter kNormalizationExporters[] = {
    {"BN", bn},
    {"BatchNorm", batch_norm},
    {"GroupNorm", group_norm},
    {"LRN", lrn},
    {"LayerNorm", layer_norm},
    {"MVN", mvn},
    {"Normalize", normalize, true},
    {"Softmax", softmax},
};

/// Adds constant input i as the layer's next blob.
Status add_blob(const OnnxNode& node, const OnnxReader& r, int i, caffe::LayerParameter* layer) {
  if (!node.has(i)) return invalid_argument("an input is missing");
  CFT_ASSIGN(const OnnxFloats c, r.floats(node.input(i)));
  floats_to_blob(c.values, c.shape, layer->add_blobs());
  return {};
}

/// BatchNorm for the statistics, Scale for what was learned.
Status read_batch_norm(const OnnxNode& node, OnnxReader& r) {
  if (node.integer("training_mode", 0)) {
    return invalid_argument("training_mode is set; export the model for inference");
  }
  const std::string inner = r.fresh(node.output());
  caffe::LayerParameter norm = r.layer("BatchNorm", node);
  norm.set_top(0, inner);
  norm.mutable_batch_norm_param()->set_eps(node.number("epsilon", 1e-5F));
  CFT_TRY(add_blob(node, r, 3, &norm));
  CFT_TRY(add_blob(node, r, 4, &norm));
  floats_to_blob(std::array{1.F}, Shape{1}, norm.add_blobs());
  caffe::LayerParameter scale = r.layer("Scale", node);
  scale.set_name(norm.name() + "_scale");
  scale.set_bottom(0, inner);
  scale.mutable_scale_param()->set_bias_term(true);
  CFT_TRY(add_blob(node, r, 1, &scale));
  CFT_TRY(add_blob(node, r, 2, &scale));
  CFT_TRY(r.add(std::move(norm)));
  return r.add(std::move(scale));
}

Status read_instance_norm(const OnnxNode& node, OnnxReader& r) {
  CFT_ASSIGN(const Shape x, r.shape(node.input(0)));
  if (x.axes() < 2) return invalid_argument("needs a channel axis");
  caffe::LayerParameter layer = r.layer("GroupNorm", node);
  layer.mutable_group_norm_param()->set_group(int32_t(x[1]));
  layer.mutable_group_norm_param()->set_eps(node.number("epsilon", 1e-5F));
  CFT_TRY(add_blob(node, r, 1, &layer));
  CFT_TRY(add_blob(node, r, 2, &layer));
  return r.add(std::move(layer));
}

Status read_layer_norm(const OnnxNode& node, OnnxReader& r) {
  caffe::LayerParameter layer = r.layer("LayerNorm", node);
  layer.mutable_layer_norm_param()->set_axis(int32_t(node.integer("axis", -1)));
  layer.mutable_layer_norm_param()->set_eps(node.number("epsilon", 1e-5F));
  CFT_TRY(add_blob(node, r, 1, &layer));
  if (node.has(2)) {
    CFT_TRY(add_blob(node, r, 2, &layer));
  } else {
    CFT_ASSIGN(const Shape shape, r.constant_shape(node.input(1)));
    const std::vector<float> zeros(size_t(shape.count()));
    floats_to_blob(zeros, shape, layer.add_blobs());
  }
  return r.add(std::move(layer));
}

Status read_lrn(const OnnxNode& node, OnnxReader& r) {
  caffe::LayerParameter layer = r.layer("LRN", node);
  caffe::LRNParameter* p = layer.mutable_lrn_param();
  const int64_t size = node.integer("size", 0);
  if (size < 1 || size > INT32_MAX) return invalid_argument("size must be above 0");
  p->set_local_size(uint32_t(size));
  p->set_alpha(node.number("alpha", 1e-4F));
  p->set_beta(node.number("beta", 0.75F));
  p->set_k(node.number("bias", 1));
  return r.add(std::move(layer));
}

/// Up to opset 12 everything from `axis` on is one axis, which only matters where more follow.
Result<caffe::LayerParameter> softmax_layer(const OnnxNode& node, const OnnxReader& r) {
  CFT_ASSIGN(const Shape x, r.shape(node.input(0)));
  const bool flattens = r.opset() < 13;
  CFT_ASSIGN(const int axis, x.axis(int(node.integer("axis", flattens ? 1 : -1))));
  if (flattens && x.count(axis + 1) != 1) {
    return invalid_argument("before opset 13 it works on all axes from its own on: export again");
  }
  caffe::LayerParameter layer = r.layer("Softmax", node);
  layer.mutable_softmax_param()->set_axis(axis);
  return layer;
}

Status read_softmax(const OnnxNode& node, OnnxReader& r) {
  CFT_ASSIGN(caffe::LayerParameter layer, softmax_layer(node, r));
  return r.add(std::move(layer));
}

/// The smallest normal float, whose logarithm is -87.3, is added to the probabilities: one that is 0
/// in single precision would have no logarithm.
Status read_log_softmax(const OnnxNode& node, OnnxReader& r) {
  CFT_ASSIGN(caffe::LayerParameter layer, softmax_layer(node, r));
  const std::string inner = r.fresh(node.output());
  layer.set_top(0, inner);
  CFT_TRY(r.add(std::move(layer)));
  caffe::LayerParameter log = r.layer("Log", node);
  log.set_bottom(0, inner);
  log.mutable_log_param()->set_shift(std::numeric_limits<float>::min());
  return r.add(std::move(log));
}

constexpr Importer kNormalizationImporters[] = {
    {"BatchNormalization", read_batch_norm},
    {"InstanceNormalization", read_instance_norm},
    {"LRN", read_lrn},
    {"LayerNormalization", read_layer_norm},
    {"LogSoftmax", read_log_softmax},
    {"Softmax", read_softmax},
};

}  // namespace

extern constinit const OnnxFamily onnx_normalization{kNormalizationExporters,
                                                     kNormalizationImporters};

}  // namespace cafetiere
