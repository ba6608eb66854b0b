// SPDX-License-Identifier: Apache-2.0
// Pooling, and SPP, which is several. Caffe pads both sides alike and rounds up by default; ONNX takes
// a pad for each side, so the trailing ones are chosen to give the same number of windows.
#include <fmt/format.h>

#include <algorithm>

#include "core/layers/spp_level.h"
#include "core/model/blob.h"
#include "core/onnx/families.h"

namespace cafetiere {
namespace {

using PoolParam = caffe::PoolingParameter;

/// One axis of a pooling.
struct Axis {
  int64_t in, out, kernel, stride, pad;

  /// What lies behind the input under the last window; not below 0.
  int64_t trailing() const { return std::max<int64_t>(0, (out - 1) * stride + kernel - in - pad); }
  /// How many positions of window `o` count in an average: those before in + pad.
  int64_t counted(int64_t o) const {
    const int64_t begin = o * stride - pad;
    return std::min(begin + kernel, in + pad) - begin;
  }
};

Axis axis_of(const ExportLayer& layer, int at) {
  const PoolParam& p = layer.param.pooling_param();
  const bool h = at == 2;
  const auto choose = [](bool has, uint32_t own, uint32_t both) {
    return int64_t(has ? own : both);
  };
  return {
      layer.bottom_shape()[at], layer.top_shape()[at],
      h ? choose(p.has_kernel_h(), p.kernel_h(), p.kernel_size())
        : choose(p.has_kernel_w(), p.kernel_w(), p.kernel_size()),
      h ? choose(p.has_stride_h(), p.stride_h(), p.stride())
        : choose(p.has_stride_w(), p.stride_w(), p.stride()),
      h ? choose(p.has_pad_h(), p.pad_h(), p.pad()) : choose(p.has_pad_w(), p.pad_w(), p.pad())};
}

/// For an average over k_h k_w positions: what corrects windows that Caffe counts fewer of.
std::string correction(OnnxWriter& w, const Axis& h, const Axis& v) {
  std::vector<float> factors;
  for (int64_t y = 0; y < h.out; ++y) {
    for (int64_t x = 0; x < v.out; ++x) {
      factors.push_back(float(h.kernel * v.kernel) / float(h.counted(y) * v.counted(x)));
    }
  }
  return w.floats({1, 1, h.out, v.out}, factors);
}

Result<OnnxValues> pooling(const ExportLayer& layer, OnnxWriter& w) {
  const PoolParam& p = layer.param.pooling_param();
  const bool max = p.pool() == PoolParam::MAX;
  if (layer.top_shapes.size() > 1) {
    return invalid_argument("its second top, the chosen indices, has no ONNX form; leave it out");
  }
  if (p.global_pooling()) {
    return OnnxValues{w.node(max ? "GlobalMaxPool" : "GlobalAveragePool", {layer.bottom()})};
  }
  const Axis h = axis_of(layer, 2), v = axis_of(layer, 3);
  if (h.trailing() >= h.kernel || v.trailing() >= v.kernel) {
    return invalid_argument("a window lies outside of the input; set round_mode: FLOOR");
  }
  std::vector<OnnxAttribute> attributes{
      {"kernel_shape", std::vector<int64_t>{h.kernel, v.kernel}},
      {"strides", std::vector<int64_t>{h.stride, v.stride}},
      {"pads", std::vector<int64_t>{h.pad, v.pad, h.trailing(), v.trailing()}}};
  if (max) return OnnxValues{w.node("MaxPool", {layer.bottom()}, attributes)};
  const bool padded = h.pad > 0 || v.pad > 0;
  attributes.push_back({"count_include_pad", int64_t(padded)});
  const std::string y = w.node("AveragePool", {layer.bottom()}, attributes);
  // Without pads only what lies inside counts, in both; with them the excess at the end does not.
  const bool excess = h.trailing() > h.pad || v.trailing() > v.pad;
  return OnnxValues{padded && excess ? w.node("Mul", {y, correction(w, h, v)}) : y};
}

/// The poolings of all levels, flattened and joined.
Result<OnnxValues> spp(const ExportLayer& layer, OnnxWriter& w) {
  const Shape& x = layer.bottom_shape();
  const int64_t levels = layer.param.spp_param().pyramid_height();
  OnnxValues rows;
  for (int64_t level = 0; level < levels; ++level) {
    const caffe::LayerParameter param = spp_level(layer.param, x, level);
    const int64_t bins = int64_t{1} << level;
    const ExportLayer pooled{
        param, layer.bottoms, layer.bottom_shapes, {Shape{x[0], x[1], bins, bins}}, {}, {}};
    CFT_ASSIGN(const OnnxValues top, pooling(pooled, w));
    if (levels == 1) return top;
    rows.push_back(w.node("Flatten", top));
  }
  return OnnxValues{w.node("Concat", rows, {{"axis", int64_t(1)}})};
}

/// Caffe's own layer of Fast R-CNN is what this operator was made for.
Result<OnnxValues> roi_pooling(const ExportLayer& layer, OnnxWriter& w) {
  const Shape& y = layer.top_shape();
  return OnnxValues{w.node("MaxRoiPool", layer.bottoms,
                           {{"pooled_shape", std::vector<int64_t>{y[2], y[3]}},
                            {"spatial_scale", layer.param.roi_pooling_param().spatial_scale()}})};
}

constexpr Exporter kPoolingExporters[] = {
    {"Pooling", pooling}, {"ROIPooling", roi_pooling}, {"SPP", spp}};

Status read_global(const OnnxNode& node, OnnxReader& r, PoolParam::PoolMethod method) {
  caffe::LayerParameter layer = r.layer("Pooling", node);
  layer.mutable_pooling_param()->set_pool(method);
  layer.mutable_pooling_param()->set_global_pooling(true);
  return r.add(std::move(layer));
}

Status read_global_average(const OnnxNode& node, OnnxReader& r) {
  return read_global(node, r, PoolParam::AVE);
}
Status read_global_max(const OnnxNode& node, OnnxReader& r) {
  return read_global(node, r, PoolParam::MAX);
}

/// An attribute of two values, as absent the same one twice.
Result<std::array<int64_t, 2>> pair_of(const OnnxNode& node, const char* name, int64_t otherwise) {
  const std::vector<int64_t> values = node.integers(name);
  if (values.empty()) return std::array{otherwise, otherwise};
  if (values.size() != 2 || *std::min_element(values.begin(), values.end()) < 1 ||
      *std::max_element(values.begin(), values.end()) > INT32_MAX) {
    return invalid_argument(std::string(name) +
                            " must be two numbers above 0: pooling has two axes");
  }
  return std::array{values[0], values[1]};
}

/// Whether a layer with this rounding has as many windows as the node, on one axis.
bool rounds_alike(const Axis& axis, bool up) {
  const int64_t room = axis.in + 2 * axis.pad - axis.kernel;
  int64_t out = (room + (up ? axis.stride - 1 : 0)) / axis.stride + 1;
  if (axis.pad > 0 && (out - 1) * axis.stride >= axis.in + axis.pad) --out;
  return room >= 0 && out == axis.out;
}

/// Both axes of a node, with the number of windows that it makes.
Result<std::array<Axis, 2>> axes_of(const OnnxNode& node, const Shape& x) {
  CFT_ASSIGN(const auto kernel, pair_of(node, "kernel_shape", 0));
  CFT_ASSIGN(const auto stride, pair_of(node, "strides", 1));
  CFT_ASSIGN(const auto dilation, pair_of(node, "dilations", 1));
  std::vector<int64_t> pads = node.integers("pads");
  if (pads.empty()) pads.assign(4, 0);
  if (x.axes() != 4 || kernel[0] == 0 || pads.size() != 4) {
    return invalid_argument("pooling has a layer for two spatial axes only");
  }
  if (dilation[0] != 1 || dilation[1] != 1) return invalid_argument("dilations have no layer");
  std::array<Axis, 2> axes{};
  for (size_t i = 0; i < 2; ++i) {
    const int64_t begin = pads[i], end = pads[i + 2];
    if (std::min(begin, end) < 0 || std::max(begin, end) >= kernel[i]) {
      return invalid_argument("pads must be smaller than the kernel");
    }
    Axis& axis = axes[i] = {x[int(i) + 2], 0, kernel[i], stride[i], begin};
    const int64_t room = axis.in + begin + end - kernel[i];
    if (room < 0) return invalid_argument("the kernel is larger than the padded input " + x.str());
    const bool up = node.integer("ceil_mode", 0) != 0;
    axis.out = (room + (up ? stride[i] - 1 : 0)) / stride[i] + 1;
    // A window that would begin behind the input and the pad before it is left out.
    if (up && (axis.out - 1) * stride[i] >= axis.in + begin) --axis.out;
  }
  return axes;
}

/// An average counts the same positions in both when nothing is padded or, where pads count, when no
/// window reaches farther than the layer's own pad.
bool counts_alike(const Axis& axis, bool pads_count) {
  return pads_count ? axis.trailing() <= axis.pad : axis.pad == 0;
}

/// How many positions of window `o` the node's average is over: all, or those inside.
int64_t node_counts(const Axis& axis, int64_t o, bool pads_count) {
  const int64_t begin = o * axis.stride - axis.pad, end = begin + axis.kernel;
  return pads_count ? axis.kernel : std::min(end, axis.in) - std::max<int64_t>(begin, 0);
}

/// The pooling, then a Scale that takes each window's sum over as many positions as the node does.
Status add_corrected(const OnnxNode& node, OnnxReader& r, caffe::LayerParameter pooling,
                     const Axis& h, const Axis& v, bool pads_count) {
  const std::string inner = r.fresh(node.output());
  pooling.set_top(0, inner);
  CFT_TRY(r.add(std::move(pooling)));
  constexpr int64_t kMaxFactors = int64_t{1} << 24;  // a small file may state any size
  if (h.out > kMaxFactors / v.out) {
    return invalid_argument(fmt::format(
        "an average without the pads needs a factor for each of {} x {} windows; at most {} are "
        "read: export it with count_include_pad, or without pads",
        h.out, v.out, kMaxFactors));
  }
  std::vector<float> factors;
  for (int64_t y = 0; y < h.out; ++y) {
    for (int64_t x = 0; x < v.out; ++x) {
      factors.push_back(float(h.counted(y) * v.counted(x)) /
                        float(node_counts(h, y, pads_count) * node_counts(v, x, pads_count)));
    }
  }
  caffe::LayerParameter scale = r.layer("Scale", node);
  scale.set_bottom(0, inner);
  scale.mutable_scale_param()->set_axis(2);
  scale.mutable_scale_param()->set_num_axes(2);
  floats_to_blob(factors, Shape{h.out, v.out}, scale.add_blobs());
  return r.add(std::move(scale));
}

Status read(const OnnxNode& node, OnnxReader& r, PoolParam::PoolMethod method) {
  CFT_ASSIGN(const Shape x, r.shape(node.input(0)));
  const std::string pad_rule = node.text("auto_pad", "NOTSET");
  if (pad_rule != "NOTSET" && pad_rule != "VALID") {
    return invalid_argument("auto_pad " + pad_rule + " is not read; give pads");
  }
  if (node.outputs() > 1) return invalid_argument("the indices of MaxPool are not read");
  CFT_ASSIGN(const auto axes, axes_of(node, x));
  const auto& [h, v] = axes;
  const bool up = !rounds_alike(h, false) || !rounds_alike(v, false);
  if (up && (!rounds_alike(h, true) || !rounds_alike(v, true))) {
    return invalid_argument("no layer has these windows: its pads are alike on both sides");
  }
  const bool pads_count = node.integer("count_include_pad", 0) != 0;
  const bool alike = counts_alike(h, pads_count) && counts_alike(v, pads_count);
  if (method == PoolParam::AVE && !alike && pads_count && node.integer("ceil_mode", 0)) {
    return invalid_argument(
        "with ceil_mode and count_include_pad it is not defined what the last windows count: give "
        "pads that fit");
  }
  caffe::LayerParameter layer = r.layer("Pooling", node);
  PoolParam* p = layer.mutable_pooling_param();
  p->set_pool(method);
  p->set_round_mode(up ? PoolParam::CEIL : PoolParam::FLOOR);
  p->set_kernel_h(uint32_t(h.kernel)), p->set_kernel_w(uint32_t(v.kernel));
  p->set_stride_h(uint32_t(h.stride)), p->set_stride_w(uint32_t(v.stride));
  p->set_pad_h(uint32_t(h.pad)), p->set_pad_w(uint32_t(v.pad));
  if (method == PoolParam::MAX || alike) return r.add(std::move(layer));
  return add_corrected(node, r, std::move(layer), h, v, pads_count);
}

Status read_average(const OnnxNode& node, OnnxReader& r) { return read(node, r, PoolParam::AVE); }
Status read_max_pool(const OnnxNode& node, OnnxReader& r) { return read(node, r, PoolParam::MAX); }

Status read_roi_pool(const OnnxNode& node, OnnxReader& r) {
  if (!node.has(1)) return invalid_argument("needs regions");
  CFT_ASSIGN(const auto size, pair_of(node, "pooled_shape", 0));
  if (size[0] == 0) return invalid_argument("needs a pooled_shape");
  caffe::LayerParameter layer = r.layer("ROIPooling", node);
  layer.add_bottom(node.input(1));
  caffe::ROIPoolingParameter* p = layer.mutable_roi_pooling_param();
  p->set_pooled_h(uint32_t(size[0])), p->set_pooled_w(uint32_t(size[1]));
  p->set_spatial_scale(node.number("spatial_scale", 1));
  return r.add(std::move(layer));
}

constexpr Importer kPoolingImporters[] = {
    {"AveragePool", read_average},      {"GlobalAveragePool", read_global_average},
    {"GlobalMaxPool", read_global_max}, {"MaxPool", read_max_pool},
    {"MaxRoiPool", read_roi_pool},
};

}  // namespace

extern constinit const OnnxFamily onnx_pooling{kPoolingExporters, kPoolingImporters};

}  // namespace cafetiere
