// SPDX-License-Identifier: Apache-2.0
// Element-wise functions of one value, and Dropout, which is nothing in inference.
#include <cmath>
#include <limits>

#include "core/model/blob.h"
#include "core/onnx/families.h"

namespace cafetiere {
namespace {

template <const char* kOp>
Result<OnnxValues> same(const ExportLayer& layer, OnnxWriter& w) {
  return OnnxValues{w.node(kOp, {layer.bottom()})};
}

constexpr char kAbs[] = "Abs", kSigmoid[] = "Sigmoid", kTanh[] = "Tanh", kSoftplus[] = "Softplus",
               kHardSwish[] = "HardSwish";

Result<OnnxValues> relu(const ExportLayer& layer, OnnxWriter& w) {
  const float slope = layer.param.relu_param().negative_slope();
  if (slope == 0) return OnnxValues{w.node("Relu", {layer.bottom()})};
  return OnnxValues{w.node("LeakyRelu", {layer.bottom()}, {{"alpha", slope}})};
}

Result<OnnxValues> relu6(const ExportLayer& layer, OnnxWriter& w) {
  const float slope = layer.param.relu6_param().negative_slope();
  if (slope == 0) return OnnxValues{w.node("Clip", {layer.bottom(), w.scalar(0), w.scalar(6)})};
  const std::string leaky = w.node("LeakyRelu", {layer.bottom()}, {{"alpha", slope}});
  return OnnxValues{w.node("Clip", {leaky, "", w.scalar(6)})};
}

Result<OnnxValues> selu(const ExportLayer& layer, OnnxWriter& w) {
  const caffe::SeLuParameter& p = layer.param.selu_param();
  return OnnxValues{
      w.node("Selu", {layer.bottom()}, {{"alpha", p.alpha()}, {"gamma", p.lambda()}})};
}

Result<OnnxValues> clip(const ExportLayer& layer, OnnxWriter& w) {
  const caffe::ClipParameter& p = layer.param.clip_param();
  return OnnxValues{w.node("Clip", {layer.bottom(), w.scalar(p.min()), w.scalar(p.max())})};
}

/// Slopes of shape (C) meet bottoms (N, C, ..): ones follow for the axes behind the channels.
Result<OnnxValues> prelu(const ExportLayer& layer, OnnxWriter& w) {
  std::vector<int64_t> dims{int64_t(layer.params[0].size())};
  if (dims[0] > 1) dims.resize(size_t(layer.bottom_shape().axes() - 1), 1);
  return OnnxValues{w.node("PRelu", {layer.bottom(), layer.constant(w, 0, Shape(dims))})};
}

Result<OnnxValues> elu(const ExportLayer& layer, OnnxWriter& w) {
  return OnnxValues{w.node("Elu", {layer.bottom()}, {{"alpha", layer.param.elu_param().alpha()}})};
}

Result<OnnxValues> hard_sigmoid(const ExportLayer& layer, OnnxWriter& w) {
  return OnnxValues{w.node("HardSigmoid", {layer.bottom()}, {{"alpha", 1.F / 6}, {"beta", 0.5F}})};
}

Result<OnnxValues> swish(const ExportLayer& layer, OnnxWriter& w) {
  const std::string& x = layer.bottom();
  const std::string gate = w.node("Sigmoid", {w.times(x, layer.param.swish_param().beta())});
  return OnnxValues{w.node("Mul", {x, gate})};
}

Result<OnnxValues> mish(const ExportLayer& layer, OnnxWriter& w) {
  const std::string& x = layer.bottom();
  return OnnxValues{w.node("Mul", {x, w.node("Tanh", {w.node("Softplus", {x})})})};
}

/// x / 2 (1 + f), f being erf(x / sqrt(2)) or tanh(sqrt(2 / pi) (x + 0.044715 x^3)).
Result<OnnxValues> gelu(const ExportLayer& layer, OnnxWriter& w) {
  const std::string& x = layer.bottom();
  std::string f;
  if (layer.param.gelu_param().approximate() == caffe::GELUParameter::TANH) {
    const std::string square = w.node("Mul", {x, x});
    const std::string factor = w.plus(w.times(square, 0.044715F), 1);
    f = w.node("Tanh", {w.times(w.node("Mul", {x, factor}), 0.797884561F)});
  } else {
    f = w.node("Erf", {w.times(x, 0.707106781F)});
  }
  return OnnxValues{w.node("Mul", {w.times(x, 0.5F), w.plus(f, 1)})};
}

Result<OnnxValues> threshold(const ExportLayer& layer, OnnxWriter& w) {
  const float level = layer.param.threshold_param().threshold();
  const std::string above = w.node("Greater", {layer.bottom(), w.scalar(level)});
  return OnnxValues{w.node("Cast", {above}, {{"to", int64_t(onnx::TensorProto::FLOAT)}})};
}

/// Nothing, or the factor of a fork's tests.
Result<OnnxValues> dropout(const ExportLayer& layer, OnnxWriter& w) {
  const caffe::DropoutParameter& p = layer.param.dropout_param();
  if (p.sample_weights_test()) {
    return invalid_argument("sample_weights_test drops at random; remove it to export the net");
  }
  if (p.scale_train()) return OnnxValues{layer.bottom()};
  return OnnxValues{w.node("Mul", {layer.bottom(), w.scalar(1 - p.dropout_ratio())})};
}

/// SeLuDropout; and Split, whose tops all are the bottom.
Result<OnnxValues> unchanged(const ExportLayer& layer, OnnxWriter&) {
  return OnnxValues(layer.top_shapes.size(), layer.bottom());
}

Result<OnnxValues> silence(const ExportLayer&, OnnxWriter&) { return OnnxValues{}; }

constexpr Exporter kActivationsExporters[] = {
    {"AbsVal", same<kAbs>},
    {"BNLL", same<kSoftplus>},
    {"Clip", clip},
    {"Dropout", dropout},
    {"ELU", elu},
    {"GELU", gelu, true},
    {"HardSigmoid", hard_sigmoid},
    {"HardSwish", same<kHardSwish>},
    {"Mish", mish},
    {"PReLU", prelu},
    {"ReLU", relu},
    {"ReLU6", relu6},
    {"SeLu", selu},
    {"SeLuDropout", unchanged},
    {"Sigmoid", same<kSigmoid>},
    {"Silence", silence},
    {"Split", unchanged},
    {"Swish", swish},
    {"TanH", same<kTanh>},
    {"Threshold", threshold},
};

template <const char* kType>
Status read_same(const OnnxNode& node, OnnxReader& r) {
  return r.add(r.layer(kType, node));
}

constexpr char kAbsVal[] = "AbsVal", kBnll[] = "BNLL", kReLU[] = "ReLU", kTanH[] = "TanH",
               kMish[] = "Mish";

Status read_leaky_relu(const OnnxNode& node, OnnxReader& r) {
  caffe::LayerParameter layer = r.layer("ReLU", node);
  layer.mutable_relu_param()->set_negative_slope(node.number("alpha", 0.01F));
  return r.add(std::move(layer));
}

Status read_prelu(const OnnxNode& node, OnnxReader& r) {
  if (!node.has(1)) return invalid_argument("needs a slope");
  CFT_ASSIGN(const OnnxFloats slope, r.floats(node.input(1)));
  caffe::LayerParameter layer = r.layer("PReLU", node);
  const int64_t count = slope.shape.count();
  CFT_ASSIGN(const Shape x, r.shape(node.input(0)));
  // Only a slope (C, 1, ..) or (1, C, 1, ..) is one of channels.
  const bool of_channels = slope.shape.axes() > 0 && x.axes() > 1 &&
                           slope.shape.axes() >= x.axes() - 1 &&
                           slope.shape[slope.shape.axes() - x.axes() + 1] == count;
  if (count != 1 && !of_channels) {
    return invalid_argument("the slope must be one number, or one a channel; its shape is " +
                            slope.shape.str());
  }
  layer.mutable_prelu_param()->set_channel_shared(count == 1);
  floats_to_blob(slope.values, count == 1 ? Shape{} : Shape{count}, layer.add_blobs());
  return r.add(std::move(layer));
}

Status read_elu(const OnnxNode& node, OnnxReader& r) {
  caffe::LayerParameter layer = r.layer("ELU", node);
  layer.mutable_elu_param()->set_alpha(node.number("alpha", 1));
  return r.add(std::move(layer));
}

Status read_selu(const OnnxNode& node, OnnxReader& r) {
  caffe::LayerParameter layer = r.layer("SeLu", node);
  layer.mutable_selu_param()->set_alpha(node.number("alpha", 1.67326319F));
  layer.mutable_selu_param()->set_lambda(node.number("gamma", 1.05070102F));
  return r.add(std::move(layer));
}

Status read_hard_sigmoid(const OnnxNode& node, OnnxReader& r) {
  if (std::fabs(node.number("alpha", 0.2F) - 1.F / 6) > 1e-6F ||
      node.number("beta", 0.5F) != 0.5F) {
    return invalid_argument("only alpha = 1/6, beta = 1/2 has a layer: HardSigmoid");
  }
  return r.add(r.layer("HardSigmoid", node));
}

Status read_gelu(const OnnxNode& node, OnnxReader& r) {
  caffe::LayerParameter layer = r.layer("GELU", node);
  if (node.text("approximate", "none") == "tanh") {
    layer.mutable_gelu_param()->set_approximate(caffe::GELUParameter::TANH);
  }
  return r.add(std::move(layer));
}

/// Bounds are attributes up to opset 10, then inputs; either may be left out.
Status read_clip(const OnnxNode& node, OnnxReader& r) {
  float bounds[] = {node.number("min", std::numeric_limits<float>::lowest()),
                    node.number("max", std::numeric_limits<float>::max())};
  for (int i = 0; i < 2; ++i) {
    if (!node.has(i + 1)) continue;
    CFT_ASSIGN(const OnnxFloats bound, r.floats(node.input(i + 1)));
    if (bound.values.size() != 1) return invalid_argument("a bound must be one number");
    bounds[i] = bound.values[0];
  }
  caffe::LayerParameter layer = r.layer("Clip", node);
  layer.mutable_clip_param()->set_min(bounds[0]);
  layer.mutable_clip_param()->set_max(bounds[1]);
  return r.add(std::move(layer));
}

/// A comparison gives 0 or 1 here; a Cast of it to floats changes nothing.
Status read_greater(const OnnxNode& node, OnnxReader& r) {
  if (!node.has(1)) return invalid_argument("needs two inputs");
  CFT_ASSIGN(const OnnxFloats level, r.floats(node.input(1)));
  if (level.values.size() != 1) return invalid_argument("the second input must be one number");
  CFT_ASSIGN(const std::string x, r.with_axes(node, node.input(0), level.shape.axes()));
  caffe::LayerParameter layer = r.layer("Threshold", node);
  layer.set_bottom(0, x);
  layer.mutable_threshold_param()->set_threshold(level.values[0]);
  return r.add(std::move(layer));
}

Status read_unchanged(const OnnxNode& node, OnnxReader& r) {
  return r.alias(node.output(), node.input(0));
}

/// From opset 12 on an input may say that it drops.
Status read_dropout(const OnnxNode& node, OnnxReader& r) {
  if (node.has(2)) {
    CFT_ASSIGN(const OnnxFloats training, r.floats(node.input(2)));
    if (training.values.size() != 1 || training.values[0] != 0) {
      return invalid_argument("training_mode is set; export the model for inference");
    }
  }
  return read_unchanged(node, r);
}

constexpr Importer kActivationsImporters[] = {
    {"Abs", read_same<kAbsVal>},
    {"Clip", read_clip},
    {"Dropout", read_dropout},
    {"Elu", read_elu},
    {"Gelu", read_gelu},
    {"Greater", read_greater},
    {"HardSigmoid", read_hard_sigmoid},
    {"HardSwish", read_same<kHardSwish>},
    {"Identity", read_unchanged},
    {"LeakyRelu", read_leaky_relu},
    {"Mish", read_same<kMish>},
    {"PRelu", read_prelu},
    {"Relu", read_same<kReLU>},
    {"Selu", read_selu},
    {"Sigmoid", read_same<kSigmoid>},
    {"Softplus", read_same<kBnll>},
    {"Tanh", read_same<kTanH>},
};

}  // namespace

extern constinit const OnnxFamily onnx_activations{kActivationsExporters, kActivationsImporters};

}  // namespace cafetiere
