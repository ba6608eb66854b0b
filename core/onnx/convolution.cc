// SPDX-License-Identifier: Apache-2.0
// Convolution and Deconvolution, of any number of spatial axes.
#include <fmt/format.h>

#include "core/layers/conv_geometry.h"
#include "core/model/blob.h"
#include "core/onnx/families.h"

namespace cafetiere {
namespace {

/// `op` on every bottom, with the same weights: Caffe allows several.
Result<OnnxValues> write(const ExportLayer& layer, OnnxWriter& w, const char* op) {
  const caffe::ConvolutionParameter& p = layer.param.convolution_param();
  const Shape& x = layer.bottom_shape();
  CFT_ASSIGN(const int axis, x.axis(p.axis()));
  if (axis != 1) return invalid_argument("ONNX has its channels on axis 1: set axis to 1");
  CFT_ASSIGN(const ConvGeometry g, conv_geometry(p, x));
  std::vector<int64_t> pads = g.pad;
  pads.insert(pads.end(), g.pad.begin(), g.pad.end());
  // A transposed convolution's weights are those of the convolution behind it: (in, out / group, ..)
  // here as there.
  OnnxValues constants{layer.constant(w, 0)};
  if (layer.params.size() > 1) constants.push_back(layer.constant(w, 1));
  OnnxValues tops;
  for (const std::string& bottom : layer.bottoms) {
    OnnxValues inputs{bottom};
    inputs.insert(inputs.end(), constants.begin(), constants.end());
    tops.push_back(w.node(op, inputs,
                          {{"kernel_shape", g.kernel},
                           {"strides", g.stride},
                           {"pads", pads},
                           {"dilations", g.dilation},
                           {"group", int64_t(g.group)}}));
  }
  return tops;
}

Result<OnnxValues> convolution(const ExportLayer& layer, OnnxWriter& w) {
  return write(layer, w, "Conv");
}
Result<OnnxValues> deconvolution(const ExportLayer& layer, OnnxWriter& w) {
  return write(layer, w, "ConvTranspose");
}

constexpr Exporter kConvolutionExporters[] = {{"Convolution", convolution},
                                              {"Deconvolution", deconvolution}};

using Values = google::protobuf::RepeatedField<uint32_t>;

/// Copies an attribute with one value an axis; all zero or one, as absent, is not written.
Status copy(const std::vector<int64_t>& from, int axes, int64_t usual, const char* what,
            Values* to) {
  if (from.empty()) return {};
  if (int(from.size()) != axes) {
    return invalid_argument(fmt::format("{} has {} values for {} axes", what, from.size(), axes));
  }
  if (std::count(from.begin(), from.end(), usual) == axes) return {};
  for (int64_t value : from) {
    if (value < 0 || value > kMaxBlobCount) {
      return invalid_argument(fmt::format("{} {} is out of range", what, value));
    }
    to->Add(uint32_t(value));
  }
  return {};
}

Status read(const OnnxNode& node, OnnxReader& r, const char* type, bool transposed) {
  if (node.inputs() < 2) return invalid_argument("needs weights");
  const std::string pad_rule = node.text("auto_pad", "NOTSET");
  if (pad_rule != "NOTSET" && pad_rule != "VALID") {
    return invalid_argument("auto_pad " + pad_rule + " is not read; give pads");
  }
  CFT_ASSIGN(const OnnxFloats weights, r.floats(node.input(1)));
  const int axes = weights.shape.axes() - 2;
  if (axes < 1) return invalid_argument("weights have too few axes: " + weights.shape.str());
  const std::vector<int64_t> pads = node.integers("pads");
  const auto half = pads.begin() + std::ptrdiff_t(pads.size() / 2);
  if (pads.size() % 2 || !std::equal(pads.begin(), half, half)) {
    return invalid_argument("a layer pads both sides alike; pads differ");
  }
  for (int64_t extra : node.integers("output_padding")) {
    if (extra != 0) return invalid_argument("output_padding has no layer");
  }
  if (node.has_attribute("output_shape"))
    return invalid_argument("output_shape: give pads instead");
  const int64_t group = node.integer("group", 1);
  if (group < 1 || group > kMaxBlobCount) return invalid_argument("group must be above 0");
  caffe::LayerParameter layer = r.layer(type, node);
  caffe::ConvolutionParameter* p = layer.mutable_convolution_param();
  p->set_num_output(uint32_t(transposed ? weights.shape[1] * group : weights.shape[0]));
  p->set_group(uint32_t(group));
  p->set_bias_term(node.has(2));
  const std::vector<int64_t> kernel(weights.shape.dims().begin() + 2, weights.shape.dims().end());
  CFT_TRY(copy(kernel, axes, 0, "kernel_shape", p->mutable_kernel_size()));
  CFT_TRY(copy({pads.begin(), half}, axes, 0, "pads", p->mutable_pad()));
  CFT_TRY(copy(node.integers("strides"), axes, 1, "strides", p->mutable_stride()));
  CFT_TRY(copy(node.integers("dilations"), axes, 1, "dilations", p->mutable_dilation()));
  floats_to_blob(weights.values, weights.shape, layer.add_blobs());
  if (node.has(2)) {
    CFT_ASSIGN(const OnnxFloats bias, r.floats(node.input(2)));
    floats_to_blob(bias.values, bias.shape, layer.add_blobs());
  }
  return r.add(std::move(layer));
}

Status read_conv(const OnnxNode& node, OnnxReader& r) {
  return read(node, r, "Convolution", false);
}
Status read_conv_transpose(const OnnxNode& node, OnnxReader& r) {
  return read(node, r, "Deconvolution", true);
}

constexpr Importer kConvolutionImporters[] = {{"Conv", read_conv},
                                              {"ConvTranspose", read_conv_transpose}};

}  // namespace

extern constinit const OnnxFamily onnx_convolution{kConvolutionExporters, kConvolutionImporters};

}  // namespace cafetiere
