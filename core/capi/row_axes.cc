// SPDX-License-Identifier: Apache-2.0
#include "core/capi/row_axes.h"

#include <algorithm>
#include <string_view>

#include "core/layers/parts.h"

namespace cafetiere::capi {
namespace {

using Param = const caffe::LayerParameter&;

/// Layers whose every value comes of the values at the same place.
constexpr std::string_view kElementWise[] = {
    "AbsVal",  "BNLL",  "Bias", "Clip",        "Dropout", "ELU",   "Eltwise",
    "Embed",   "Exp",   "GELU", "HardSwish",   "Log",     "Mish",  "PReLU",
    "Permute", "Power", "ReLU", "HardSigmoid", "ReLU6",   "Scale", "Sigmoid",
    "Split",   "Swish", "TanH", "Threshold"};

/// Whether a layer mixes what lies apart on `axis` of its first bottom x.
struct Mixing {
  std::string_view type;
  bool (*mixes)(Param param, const Shape& x, int axis);
};

/// Those that work along axis `given` of x alone, and those that work along all from there on.
bool along(const Shape& x, int given, int axis) {
  const Result<int> own = x.axis(given);
  return !own.ok() || axis == *own;
}
bool from(const Shape& x, int given, int axis) {
  const Result<int> first = x.axis(given);
  return !first.ok() || axis >= *first;
}

template <class Parts>
bool along_parts(const Parts& p, bool has_old, uint32_t old, const Shape& x, int axis) {
  const Result<int> own = parts_axis(x, p.has_axis(), p.axis(), has_old, old);
  return !own.ok() || axis == *own;
}

bool argmax(Param param, const Shape& x, int axis) {
  const caffe::ArgMaxParameter& p = param.argmax_param();
  return p.has_axis() ? along(x, p.axis(), axis) : axis >= 1;
}
bool batch_norm(Param param, const Shape&, int) {
  const caffe::BatchNormParameter& p = param.batch_norm_param();
  return p.has_use_global_stats() && !p.use_global_stats();
}
bool concat(Param param, const Shape& x, int axis) {
  const caffe::ConcatParameter& p = param.concat_param();
  return along_parts(p, p.has_concat_dim(), p.concat_dim(), x, axis);
}
bool convolution(Param param, const Shape& x, int axis) {
  return from(x, param.convolution_param().axis(), axis);
}
bool lrn(Param param, const Shape&, int axis) {
  const bool across = param.lrn_param().norm_region() == caffe::LRNParameter::ACROSS_CHANNELS;
  return across ? axis == 1 : axis >= 2;
}
bool slice(Param param, const Shape& x, int axis) {
  const caffe::SliceParameter& p = param.slice_param();
  return along_parts(p, p.has_slice_dim(), p.slice_dim(), x, axis);
}
bool softmax(Param param, const Shape& x, int axis) {
  return along(x, param.softmax_param().axis(), axis);
}
bool features(Param, const Shape&, int axis) { return axis >= 1; }
bool sequence(Param, const Shape&, int axis) { return axis != 1; }

constexpr Mixing kMixing[] = {
    {"ArgMax", argmax},
    {"Attention", features},
    {"BatchNorm", batch_norm},
    {"Concat", concat},
    {"Convolution", convolution},
    {"Crop",
     [](Param p, const Shape& x, int axis) { return from(x, p.crop_param().axis(), axis); }},
    {"Deconvolution", convolution},
    {"GroupNorm", features},
    {"Im2col", convolution},
    {"InnerProduct", [](Param p, const Shape& x,
                        int axis) { return from(x, p.inner_product_param().axis(), axis); }},
    {"Interp", [](Param, const Shape& x, int axis) { return from(x, -2, axis); }},
    {"LRN", lrn},
    {"LSTM", sequence},
    {"LSTMUnit", sequence},
    {"LayerNorm",
     [](Param p, const Shape& x, int axis) { return from(x, p.layer_norm_param().axis(), axis); }},
    {"MVN", [](Param p, const Shape&,
               int axis) { return axis >= (p.mvn_param().across_channels() ? 1 : 2); }},
    {"Pooling", [](Param, const Shape&, int axis) { return axis >= 2; }},
    {"RNN", sequence},
    {"Reduction",
     [](Param p, const Shape& x, int axis) { return from(x, p.reduction_param().axis(), axis); }},
    {"SPP", features},
    {"Slice", slice},
    {"Softmax", softmax},
    {"SoftmaxWithLoss", softmax},
    {"Tile",
     [](Param p, const Shape& x, int axis) { return along(x, p.tile_param().axis(), axis); }},
};

/// One layer of a net with the shapes and the row axes of all blobs.
class RowPaths {
 public:
  RowPaths(const std::vector<Shape>& shapes, const std::vector<int>& axes)
      : shapes_(shapes), axes_(axes) {}

  /// Whether the layer keeps the rows of its bottoms apart in top `top`.
  bool keeps_apart(const Node& node, int top) const {
    const auto has_rows = [this](int blob) { return axes_[size_t(blob)] >= 0; };
    if (std::ranges::none_of(node.bottoms, has_rows)) return true;
    if (!has_rows(node.bottoms[0]) || !has_rows(top)) return false;
    const std::string& type = node.param.type();
    const Shape& x = shapes_[size_t(node.bottoms[0])];
    const int axis = axes_[size_t(node.bottoms[0])];
    if (type == "Flatten" || type == "Reshape") {
      return x.count(0, axis) == shapes_[size_t(top)].count(0, axes_[size_t(top)]);
    }
    if (std::ranges::find(kElementWise, type) != std::end(kElementWise)) return true;
    const auto found = std::ranges::find(kMixing, type, &Mixing::type);
    return found != std::end(kMixing) && !found->mixes(node.param, x, axis);
  }

 private:
  const std::vector<Shape>& shapes_;
  const std::vector<int>& axes_;
};

}  // namespace

std::vector<int> row_axes(const Graph& graph, int64_t batch, const std::vector<Shape>& shapes) {
  const auto more = graph.infer(batch + 1);  // not every net can: one may reshape to fixed sizes
  std::vector<int> axes;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::vector<int64_t>& dims = shapes[i].dims();
    if (more.ok()) {
      const auto axis = std::ranges::mismatch(dims, (*more)[i].dims()).in1;
      axes.push_back(axis == dims.end() ? -1 : int(axis - dims.begin()));
    } else {
      axes.push_back(!dims.empty() && dims[0] == batch ? 0 : -1);
    }
  }
  return axes;
}

bool rows_are_apart(const Graph& graph, const std::vector<Shape>& shapes,
                    const std::vector<int>& row_axes, const std::vector<std::string>& outputs) {
  const RowPaths paths(shapes, row_axes);
  std::vector<bool> needed(graph.blob_names().size(), false);
  for (const std::string& output : outputs) {
    const size_t blob = size_t(graph.find_blob(output));
    if (row_axes[blob] < 0) return false;
    needed[blob] = true;
  }
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    for (int top : node.tops) {
      if (!needed[size_t(top)]) continue;
      if (!paths.keeps_apart(node, top)) return false;
      for (int bottom : node.bottoms) needed[size_t(bottom)] = true;
    }
  }
  return true;
}

}  // namespace cafetiere::capi
