// SPDX-License-Identifier: Apache-2.0
// Layers that join, cut, repeat and pick values: Concat, Slice, Crop, Tile, BatchReindex.
#include "core/layers/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/onnx/families.h"

namespace cafetiere {
namespace {

Result<OnnxValues> concat(const ExportLayer& layer, OnnxWriter& w) {
  const caffe::ConcatParameter& p = layer.param.concat_param();
  CFT_ASSIGN(const int axis, parts_axis(layer.bottom_shape(), p.has_axis(), p.axis(),
                                        p.has_concat_dim(), p.concat_dim()));
  return OnnxValues{w.node("Concat", layer.bottoms, {{"axis", int64_t(axis)}})};
}

Result<OnnxValues> slice(const ExportLayer& layer, OnnxWriter& w) {
  const caffe::SliceParameter& p = layer.param.slice_param();
  CFT_ASSIGN(const int axis, parts_axis(layer.bottom_shape(), p.has_axis(), p.axis(),
                                        p.has_slice_dim(), p.slice_dim()));
  std::vector<int64_t> sizes;
  for (const Shape& top : layer.top_shapes) sizes.push_back(top[axis]);
  return w.nodes("Split", {layer.bottom(), w.integers(sizes)}, sizes.size(),
                 {{"axis", int64_t(axis)}});
}

Result<OnnxValues> tile(const ExportLayer& layer, OnnxWriter& w) {
  std::vector<int64_t> repeats;
  for (int i = 0; i < layer.top_shape().axes(); ++i) {
    repeats.push_back(layer.bottom_shape()[i] ? layer.top_shape()[i] / layer.bottom_shape()[i] : 1);
  }
  return OnnxValues{w.node("Tile", {layer.bottom(), w.integers(repeats)})};
}

Result<OnnxValues> crop(const ExportLayer& layer, OnnxWriter& w) {
  const caffe::CropParameter& p = layer.param.crop_param();
  CFT_ASSIGN(const int first, layer.bottom_shape().axis(p.axis()));
  std::vector<int64_t> begins, ends, axes;
  for (int axis = first; axis < layer.bottom_shape().axes(); ++axis) {
    const int at = p.offset_size() > 1 ? axis - first : 0;
    begins.push_back(p.offset_size() ? p.offset(at) : 0);
    ends.push_back(begins.back() + layer.top_shape()[axis]);
    axes.push_back(axis);
  }
  return OnnxValues{
      w.node("Slice", {layer.bottom(), w.integers(begins), w.integers(ends), w.integers(axes)})};
}

Result<OnnxValues> batch_reindex(const ExportLayer& layer, OnnxWriter& w) {
  const std::string index =
      w.node("Cast", {layer.bottoms[1]}, {{"to", int64_t(onnx::TensorProto::INT64)}});
  return OnnxValues{w.node("Gather", {layer.bottom(), index})};
}

constexpr Exporter kPartsExporters[] = {
    {"BatchReindex", batch_reindex},
    {"Concat", concat},
    {"Crop", crop},
    {"Slice", slice},
    {"Tile", tile},
};

/// Of constants, a longer list of integers; else a layer.
Status read_concat(const OnnxNode& node, OnnxReader& r) {
  const auto constant = [&](const std::string& input) { return r.is_constant(input); };
  const auto& inputs = node.proto().input();
  if (!std::all_of(inputs.begin(), inputs.end(), constant)) {
    caffe::LayerParameter layer = r.layer("Concat", node);
    for (int i = 1; i < node.inputs(); ++i) layer.add_bottom(node.input(i));
    layer.mutable_concat_param()->set_axis(int32_t(node.integer("axis", 1)));
    return r.add(std::move(layer));
  }
  std::vector<int64_t> all;
  for (const std::string& input : inputs) {
    CFT_ASSIGN(const std::vector<int64_t> part, r.integers(input));
    all.insert(all.end(), part.begin(), part.end());
  }
  return r.add_integers(node.output(), {int64_t(all.size())}, all);
}

/// Outputs that nobody reads would be outputs of the net.
Status silence_unused(const OnnxNode& node, OnnxReader& r) {
  caffe::LayerParameter layer = r.layer("Silence", node);
  layer.clear_bottom();
  layer.clear_top();
  for (const std::string& output : node.proto().output()) {
    if (!r.is_used(output)) layer.add_bottom(output);
  }
  return layer.bottom().empty() ? Status() : r.add(std::move(layer));
}

Status read_split(const OnnxNode& node, OnnxReader& r) {
  CFT_ASSIGN(const Shape x, r.shape(node.input(0)));
  CFT_ASSIGN(const int axis, x.axis(int(node.integer("axis", 0))));
  std::vector<int64_t> sizes = node.integers("split");
  if (node.has(1)) {
    CFT_ASSIGN(sizes, r.integers(node.input(1)));
  }
  const int tops = node.outputs();
  const int64_t part = (x[axis] + tops - 1) / tops;  // the last may be smaller
  if (sizes.empty()) sizes.assign(size_t(tops), part);
  caffe::LayerParameter layer = r.layer("Slice", node);
  layer.mutable_slice_param()->set_axis(axis);
  if (int(sizes.size()) != tops) return invalid_argument("it has not as many sizes as outputs");
  int64_t point = 0;
  for (int i = 1; i < tops; ++i) {
    const int64_t size = sizes[size_t(i - 1)];
    if (size < 1 || size >= x[axis] - point) return invalid_argument("sizes do not fit " + x.str());
    point += size;
    layer.mutable_slice_param()->add_slice_point(uint32_t(point));
    layer.add_top(node.output(i));
  }
  CFT_TRY(r.add(std::move(layer)));
  return silence_unused(node, r);
}

/// What a Slice keeps of an axis: [begin, end).
struct Range {
  int axis;
  int64_t begin, end;
};

/// The ranges of a Slice of x, those that keep all of an axis left out. What says them are attributes
/// up to opset 9, then inputs.
Result<std::vector<Range>> ranges_of(const OnnxNode& node, const OnnxReader& r, const Shape& x) {
  const auto list = [&](int i, const char* name) -> Result<std::vector<int64_t>> {
    return node.has(i) ? r.integers(node.input(i)) : node.integers(name);
  };
  CFT_ASSIGN(const std::vector<int64_t> begins, list(1, "starts"));
  CFT_ASSIGN(const std::vector<int64_t> ends, list(2, "ends"));
  CFT_ASSIGN(std::vector<int64_t> axes, list(3, "axes"));
  CFT_ASSIGN(const std::vector<int64_t> steps, list(4, "steps"));
  if (axes.empty()) {
    axes.resize(begins.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (begins.size() != ends.size() || begins.size() != axes.size()) {
    return invalid_argument("it has not as many starts as ends and axes");
  }
  if (std::ranges::any_of(steps, [](int64_t step) { return step != 1; })) {
    return invalid_argument("only steps of 1 have a layer");
  }
  std::vector<Range> ranges;
  for (size_t i = 0; i < axes.size(); ++i) {
    CFT_ASSIGN(const int axis, x.axis(int(std::clamp<int64_t>(axes[i], INT32_MIN, INT32_MAX))));
    const auto within = [size = x[axis]](int64_t at) {
      return at < 0 ? std::max<int64_t>(at + size, 0) : std::min(at, size);
    };
    const Range range{axis, within(begins[i]), within(ends[i])};
    if (range.begin >= range.end) return invalid_argument("nothing is left of x: " + x.str());
    if (range.end - range.begin < x[axis]) ranges.push_back(range);
  }
  return ranges;
}

/// A Slice layer that makes `top` of what `range` keeps, and a Silence for the rest.
Status add_cut(const OnnxNode& node, OnnxReader& r, const std::string& bottom, const Range& range,
               const std::string& top) {
  CFT_ASSIGN(const Shape x, r.shape(bottom));
  caffe::LayerParameter layer = r.layer("Slice", node), rest = r.layer("Silence", node);
  layer.set_bottom(0, bottom);
  layer.clear_top();
  rest.clear_bottom();
  rest.clear_top();
  layer.mutable_slice_param()->set_axis(range.axis);
  const auto drop = [&] {
    layer.add_top(r.fresh(top));
    rest.add_bottom(layer.top(layer.top_size() - 1));
  };
  if (range.begin > 0) {
    layer.mutable_slice_param()->add_slice_point(uint32_t(range.begin));
    drop();
  }
  layer.add_top(top);
  if (range.end < x[range.axis]) {
    layer.mutable_slice_param()->add_slice_point(uint32_t(range.end));
    drop();
  }
  CFT_TRY(r.add(std::move(layer)));
  return r.add(std::move(rest));
}

/// Of a constant, a part of the list; else a layer for each axis that is cut.
Status read_slice(const OnnxNode& node, OnnxReader& r) {
  if (r.is_constant(node.input(0))) {
    CFT_ASSIGN(std::vector<int64_t> list, r.integers(node.input(0)));
    const Shape whole{int64_t(list.size())};
    CFT_ASSIGN(const std::vector<Range> ranges, ranges_of(node, r, whole));
    if (!ranges.empty()) list = {list.begin() + ranges[0].begin, list.begin() + ranges[0].end};
    return r.add_integers(node.output(), {int64_t(list.size())}, list);
  }
  CFT_ASSIGN(const Shape x, r.shape(node.input(0)));
  CFT_ASSIGN(const std::vector<Range> ranges, ranges_of(node, r, x));
  if (ranges.empty()) return r.alias(node.output(), node.input(0));
  std::string value = node.input(0);
  for (size_t i = 0; i < ranges.size(); ++i) {
    const std::string top = i + 1 < ranges.size() ? r.fresh(node.output()) : node.output();
    CFT_TRY(add_cut(node, r, value, ranges[i], top));
    value = top;
  }
  return {};
}

/// A Tile layer for each axis that is repeated.
Status read_tile(const OnnxNode& node, OnnxReader& r) {
  if (!node.has(1)) return invalid_argument("needs repeats");
  CFT_ASSIGN(const Shape x, r.shape(node.input(0)));
  CFT_ASSIGN(const std::vector<int64_t> repeats, r.integers(node.input(1)));
  if (int(repeats.size()) != x.axes()) return invalid_argument("needs one repeat an axis");
  std::vector<int> axes;
  for (int axis = 0; axis < x.axes(); ++axis) {
    const int64_t times = repeats[size_t(axis)];
    if (times < 1 || times > INT32_MAX) return invalid_argument("repeats are out of range");
    if (times > 1) axes.push_back(axis);
  }
  if (axes.empty()) return r.alias(node.output(), node.input(0));
  std::string value = node.input(0);
  for (int axis : axes) {
    caffe::LayerParameter layer = r.layer("Tile", node);
    layer.set_bottom(0, value);
    value = axis == axes.back() ? node.output() : r.fresh(node.output());
    layer.set_top(0, value);
    layer.mutable_tile_param()->set_axis(axis);
    layer.mutable_tile_param()->set_tiles(int32_t(repeats[size_t(axis)]));
    CFT_TRY(r.add(std::move(layer)));
  }
  return {};
}

constexpr Importer kPartsImporters[] = {
    {"Concat", read_concat}, {"Slice", read_slice}, {"Split", read_split}, {"Tile", read_tile}};

}  // namespace

extern constinit const OnnxFamily onnx_parts{kPartsExporters, kPartsImporters};

}  // namespace cafetiere
