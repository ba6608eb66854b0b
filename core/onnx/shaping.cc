// SPDX-License-Identifier: Apache-2.0
// Layers that give values another shape or order: Flatten, Reshape, Permute, Interp.
#include <fmt/format.h>

#include <algorithm>

#include "core/onnx/families.h"

namespace cafetiere {
namespace {

Result<OnnxValues> flatten(const ExportLayer& layer, OnnxWriter& w) {
  if (layer.top_shape() == Shape{layer.bottom_shape()[0], layer.bottom_shape().count(1)}) {
    return OnnxValues{w.node("Flatten", {layer.bottom()})};
  }
  return OnnxValues{w.reshape(layer.bottom(), layer.top_shape())};
}

Result<OnnxValues> reshape(const ExportLayer& layer, OnnxWriter& w) {
  return OnnxValues{w.reshape(layer.bottom(), layer.top_shape())};
}

Result<OnnxValues> permute(const ExportLayer& layer, OnnxWriter& w) {
  const auto& given = layer.param.permute_param().order();
  std::vector<int64_t> order(given.begin(), given.end());
  for (int axis = 0; axis < layer.bottom_shape().axes(); ++axis) {
    if (std::count(given.begin(), given.end(), axis) == 0) order.push_back(axis);
  }
  return OnnxValues{w.node("Transpose", {layer.bottom()}, {{"perm", order}})};
}

/// Resize is told the sizes of four axes; what lies in front of height and width is one.
Result<OnnxValues> interp(const ExportLayer& layer, OnnxWriter& w) {
  const caffe::InterpParameter& p = layer.param.interp_param();
  if (p.pad_beg() != 0 || p.pad_end() != 0) {
    return invalid_argument("pad_beg and pad_end have no ONNX form; cut the edges off by a Crop");
  }
  const Shape &in = layer.bottom_shape(), &out = layer.top_shape();
  const int h = in.axes() - 2;
  const auto image = [h](const Shape& s) { return Shape{1, s.count(0, h), s[h], s[h + 1]}; };
  const bool nearest = p.mode() == caffe::InterpParameter::NEAREST;
  std::vector<OnnxAttribute> attributes{{"mode", std::string(nearest ? "nearest" : "linear")}};
  if (nearest) attributes.push_back({"nearest_mode", std::string("floor")});
  attributes.push_back(
      {"coordinate_transformation_mode", std::string(nearest             ? "asymmetric"
                                                     : p.align_corners() ? "align_corners"
                                                                         : "half_pixel")});
  const std::string x = in.axes() == 4 ? layer.bottom() : w.reshape(layer.bottom(), image(in));
  const std::string size = w.integers(in.axes() == 4 ? out.dims() : image(out).dims());
  const std::string y = w.node("Resize", {x, "", "", size}, attributes);
  return OnnxValues{in.axes() == 4 ? y : w.reshape(y, out)};
}

/// The form that repeats pixels.
Result<OnnxValues> upsample(const ExportLayer& layer, OnnxWriter& w) {
  if (layer.bottoms.size() > 1) {
    return invalid_argument("the places that a Pooling chose have no ONNX form");
  }
  return OnnxValues{w.node("Resize", {layer.bottom(), "", "", w.integers(layer.top_shape().dims())},
                           {{"mode", std::string("nearest")},
                            {"nearest_mode", std::string("floor")},
                            {"coordinate_transformation_mode", std::string("asymmetric")}})};
}

/// Channels as rows and columns, transposed.
Result<OnnxValues> shuffle_channel(const ExportLayer& layer, OnnxWriter& w) {
  const Shape& x = layer.bottom_shape();
  const int64_t group = layer.param.shuffle_channel_param().group();
  const std::string matrix = w.reshape(layer.bottom(), {x[0], group, x[1] / group, x.count(2)});
  const std::string turned =
      w.node("Transpose", {matrix}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  return OnnxValues{w.reshape(turned, x)};
}

constexpr Exporter kShapingExporters[] = {
    {"Flatten", flatten},
    {"Interp", interp},
    {"Permute", permute},
    {"Reshape", reshape},
    {"ShuffleChannel", shuffle_channel},
    {"Upsample", upsample},
};

/// A Reshape to `dims`; a first size that stays is left to the net, so that its batch may change.
Status add_reshape(const OnnxNode& node, OnnxReader& r, std::vector<int64_t> dims) {
  CFT_ASSIGN(const Shape x, r.shape(node.input(0)));
  if (!dims.empty() && x.axes() > 0 && dims[0] == x[0]) dims[0] = 0;
  return r.add_reshape(node, node.input(0), node.output(), dims);
}

Status read_reshape(const OnnxNode& node, OnnxReader& r) {
  if (!node.has(1)) return invalid_argument("needs a shape");
  CFT_ASSIGN(std::vector<int64_t> dims, r.integers(node.input(1)));
  if (node.integer("allowzero", 0) && std::count(dims.begin(), dims.end(), 0)) {
    return invalid_argument("a size of 0 has no layer");
  }
  if (!r.is_constant(node.input(0))) return add_reshape(node, r, std::move(dims));
  CFT_ASSIGN(const std::vector<int64_t> values, r.integers(node.input(0)));
  const int64_t count = int64_t(values.size());
  if (dims != std::vector<int64_t>{-1} && dims != std::vector<int64_t>{count}) {
    return invalid_argument("a constant is only reshaped to one axis");
  }
  return r.add_integers(node.output(), {count}, values);
}

Status read_flatten(const OnnxNode& node, OnnxReader& r) {
  CFT_ASSIGN(const Shape x, r.shape(node.input(0)));
  const int64_t given = node.integer("axis", 1);
  if (given == 1 && x.axes() > 1) return r.add(r.layer("Flatten", node));
  const int64_t axis = given < 0 ? given + x.axes() : given;
  if (axis < 0 || axis > x.axes()) return invalid_argument("axis is out of range");
  return add_reshape(node, r, {x.count(0, int(axis)), x.count(int(axis))});
}

/// The axes of Squeeze and Unsqueeze: an attribute up to opset 12, then an input. Of `rank`, sorted.
Result<std::vector<int64_t>> axes_of(const OnnxNode& node, const OnnxReader& r, int64_t rank) {
  std::vector<int64_t> axes = node.integers("axes");
  if (node.has(1)) {
    CFT_ASSIGN(axes, r.integers(node.input(1)));
  }
  for (int64_t& axis : axes) {
    if (axis < -rank || axis >= rank) return invalid_argument("axes are out of range");
    if (axis < 0) axis += rank;
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

/// A constant stays a list of numbers, or becomes one.
Status reshape_constant(const OnnxNode& node, OnnxReader& r, bool squeeze) {
  CFT_ASSIGN(const std::vector<int64_t> values, r.integers(node.input(0)));
  return r.add_integers(node.output(),
                        squeeze && values.size() == 1 ? Shape{} : Shape{int64_t(values.size())},
                        values);
}

Status read_squeeze(const OnnxNode& node, OnnxReader& r) {
  if (r.is_constant(node.input(0))) return reshape_constant(node, r, true);
  CFT_ASSIGN(const Shape x, r.shape(node.input(0)));
  CFT_ASSIGN(const std::vector<int64_t> axes, axes_of(node, r, x.axes()));
  std::vector<int64_t> dims;
  for (int i = 0; i < x.axes(); ++i) {
    const bool named = std::binary_search(axes.begin(), axes.end(), i);
    if (named && x[i] != 1) return invalid_argument("an axis to be removed is not 1: " + x.str());
    if (!(named || (axes.empty() && x[i] == 1))) dims.push_back(x[i]);
  }
  return add_reshape(node, r, std::move(dims));
}

Status read_unsqueeze(const OnnxNode& node, OnnxReader& r) {
  if (r.is_constant(node.input(0))) return reshape_constant(node, r, false);
  CFT_ASSIGN(const Shape x, r.shape(node.input(0)));
  int64_t added = int64_t(node.integers("axes").size());
  if (node.has(1)) {
    CFT_ASSIGN(const std::vector<int64_t> given, r.integers(node.input(1)));
    added = int64_t(given.size());
  }
  CFT_ASSIGN(const std::vector<int64_t> axes, axes_of(node, r, x.axes() + added));
  std::vector<int64_t> dims = x.dims();
  for (int64_t axis : axes) {
    if (axis > int64_t(dims.size())) return invalid_argument("axes are out of range");
    dims.insert(dims.begin() + axis, 1);
  }
  return add_reshape(node, r, std::move(dims));
}

Status read_transpose(const OnnxNode& node, OnnxReader& r) {
  CFT_ASSIGN(const Shape x, r.shape(node.input(0)));
  std::vector<int64_t> order = node.integers("perm");
  if (order.empty()) {
    for (int axis = x.axes(); axis-- > 0;) order.push_back(axis);
  }
  caffe::LayerParameter layer = r.layer("Permute", node);
  for (int64_t axis : order) {
    if (axis < 0 || axis >= x.axes()) return invalid_argument("perm is out of range");
    layer.mutable_permute_param()->add_order(int32_t(axis));
  }
  return r.add(std::move(layer));
}

/// The sizes that a Resize gives, and whether each is its scale times the size of x exactly.
struct Resized {
  std::vector<int64_t> sizes;
  bool whole = true;
};

/// Scales are multiplied in single precision and cut, as in onnxruntime: 0.7 of 10 are 7.
Result<Resized> resized(const OnnxNode& node, const OnnxReader& r, const Shape& x) {
  Resized to;
  if (node.has(3)) {
    CFT_ASSIGN(to.sizes, r.integers(node.input(3)));
    return to;
  }
  if (!node.has(2)) return invalid_argument("needs constant sizes or scales");
  CFT_ASSIGN(const OnnxFloats scales, r.floats(node.input(2)));
  for (int i = 0; i < x.axes() && i < int(scales.values.size()); ++i) {
    const float size = float(x[i]) * scales.values[size_t(i)];
    if (!(size >= 1 && size < float(INT32_MAX))) {
      return invalid_argument("scales are out of range");
    }
    to.sizes.push_back(int64_t(size));
    to.whole = to.whole && float(to.sizes.back()) == size;
  }
  return to;
}

Status read_resize(const OnnxNode& node, OnnxReader& r) {
  CFT_ASSIGN(const Shape x, r.shape(node.input(0)));
  const std::vector<int64_t> axes = node.integers("axes");
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] != int64_t(i)) return invalid_argument("axes must be left out, or all in order");
  }
  CFT_ASSIGN(const Resized to, resized(node, r, x));
  const std::vector<int64_t>& sizes = to.sizes;
  const int h = x.axes() - 2;
  if (h < 1 || int(sizes.size()) != x.axes() ||
      !std::equal(sizes.begin(), sizes.begin() + h, x.dims().begin()) || sizes[size_t(h)] < 1 ||
      sizes[size_t(h) + 1] < 1 || sizes[size_t(h)] > INT32_MAX ||
      sizes[size_t(h) + 1] > INT32_MAX) {
    return invalid_argument("only height and width, the last axes, are resized: " + x.str());
  }
  caffe::LayerParameter layer = r.layer("Interp", node);
  caffe::InterpParameter* p = layer.mutable_interp_param();
  p->set_height(int32_t(sizes[size_t(h)]));
  p->set_width(int32_t(sizes[size_t(h) + 1]));
  if (node.integer("antialias", 0) != 0) return invalid_argument("antialias has no layer");
  const std::string policy = node.text("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch") {
    return invalid_argument("keep_aspect_ratio_policy " + policy +
                            " has no layer: give the sizes that it makes, with stretch");
  }
  const std::string mode = node.text("mode", "nearest");
  const std::string at = node.text("coordinate_transformation_mode", "half_pixel");
  const std::string rounding = node.text("nearest_mode", "round_prefer_floor");
  // ONNX then divides places by the scale, the layer by the quotient of the sizes.
  if (!to.whole && at != "align_corners") {
    return invalid_argument(fmt::format(
        "its scales do not give whole sizes for {}: such a Resize has a layer only with "
        "align_corners; export it with sizes in place of scales",
        x.str()));
  }
  if (mode == "nearest" && at == "asymmetric" && rounding == "floor") {
    p->set_mode(caffe::InterpParameter::NEAREST);
  } else if (mode == "linear" &&
             (at == "align_corners" || at == "half_pixel" ||
              (at == "pytorch_half_pixel" && sizes[size_t(h)] > 1 && sizes[size_t(h) + 1] > 1))) {
    p->set_align_corners(at == "align_corners");
  } else {
    return invalid_argument(fmt::format(
        "mode {} with {} has no layer; nearest with asymmetric and floor has, and linear with "
        "align_corners or half_pixel",
        mode, at));
  }
  return r.add(std::move(layer));
}

constexpr Importer kShapingImporters[] = {
    {"Flatten", read_flatten}, {"Reshape", read_reshape},     {"Resize", read_resize},
    {"Squeeze", read_squeeze}, {"Transpose", read_transpose}, {"Unsqueeze", read_unsqueeze},
};

}  // namespace

extern constinit const OnnxFamily onnx_shaping{kShapingExporters, kShapingImporters};

}  // namespace cafetiere
