// SPDX-License-Identifier: Apache-2.0
// Validates a ConvolutionParameter against the shape of its bottom.
#pragma once

#include <fmt/format.h>

#include "core/device/geometry.h"
#include "core/graph/layer.h"

namespace cafetiere {

/// pad, kernel_size, stride or dilation: one value for all axes, one per axis, or the _h/_w fields.
inline Status spatial_values(const google::protobuf::RepeatedField<uint32_t>& values, bool has_hw,
                             uint32_t h, uint32_t w, int axes, int64_t absent, const char* what,
                             std::vector<int64_t>& out) {
  if (has_hw) {
    if (axes != 2 || values.size() > 0) {
      return invalid_argument(
          fmt::format("{0}_h and {0}_w need exactly 2 spatial axes and no {0}", what));
    }
    out = {h, w};
    return {};
  }
  if (values.size() != 0 && values.size() != 1 && values.size() != axes) {
    return invalid_argument(
        fmt::format("{} is given {} times for {} spatial axes; give it once or "
                    "once for each",
                    what, values.size(), axes));
  }
  out.assign(size_t(axes), absent);
  for (int i = 0; i < axes && values.size() > 0; ++i) {
    out[size_t(i)] = values.Get(values.size() == 1 ? 0 : i);
  }
  return {};
}

/// The geometry of a convolution; all axes before `axis` are the batch. Leaves `out` empty.
inline Result<ConvGeometry> conv_geometry(const caffe::ConvolutionParameter& p,
                                          const Shape& bottom) {
  CFT_ASSIGN(const int axis, bottom.axis(p.axis()));
  ConvGeometry g;
  const int axes = bottom.axes() - axis - 1;
  g.n = bottom.count(0, axis);
  g.channels = bottom[axis];
  g.outputs = p.depthwise() ? g.channels : p.num_output();
  g.group = p.depthwise() ? g.channels : p.group();
  for (int i = 0; i < axes; ++i) g.in.push_back(bottom[axis + 1 + i]);
  CFT_TRY(spatial_values(p.kernel_size(), p.has_kernel_h() || p.has_kernel_w(), p.kernel_h(),
                         p.kernel_w(), axes, 0, "kernel", g.kernel));
  CFT_TRY(spatial_values(p.stride(), p.has_stride_h() || p.has_stride_w(),
                         p.has_stride_h() ? p.stride_h() : 1, p.has_stride_w() ? p.stride_w() : 1,
                         axes, 1, "stride", g.stride));
  CFT_TRY(spatial_values(p.pad(), p.has_pad_h() || p.has_pad_w(), p.pad_h(), p.pad_w(), axes, 0,
                         "pad", g.pad));
  CFT_TRY(spatial_values(p.dilation(), false, 1, 1, axes, 1, "dilation", g.dilation));
  if (g.outputs == 0) return invalid_argument("num_output must be above 0");
  if (g.group == 0 || g.channels % g.group || g.outputs % g.group) {
    return invalid_argument(
        fmt::format("group {} must divide both the {} input channels and the "
                    "{} outputs",
                    g.group, g.channels, g.outputs));
  }
  for (int i = 0; i < axes; ++i) {
    if (g.kernel[size_t(i)] <= 0 || g.stride[size_t(i)] <= 0 || g.dilation[size_t(i)] <= 0) {
      return invalid_argument("kernel_size, stride and dilation must be above 0");
    }
  }
  return g;
}

/// conv_geometry() with `out` set: the number of positions of the dilated kernel in the padded
/// input.
inline Result<ConvGeometry> convolution_geometry(const caffe::ConvolutionParameter& p,
                                                 const Shape& bottom) {
  CFT_ASSIGN(ConvGeometry g, conv_geometry(p, bottom));
  for (size_t i = 0; i < g.in.size(); ++i) {
    const int64_t extent = g.dilation[i] * (g.kernel[i] - 1) + 1;
    const int64_t room = g.in[i] + 2 * g.pad[i] - extent;
    if (room < 0) {
      return invalid_argument(
          fmt::format("the kernel ({} with dilation) is larger than the "
                      "padded input ({}) of shape {}",
                      extent, g.in[i] + 2 * g.pad[i], bottom.str()));
    }
    g.out.push_back(room / g.stride[i] + 1);
  }
  return g;
}

/// The shape (n, channels, spatial..) in which devices take images.
inline Shape image_shape(int64_t n, int64_t channels, const std::vector<int64_t>& spatial) {
  std::vector<int64_t> dims{n, channels};
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  return Shape(std::move(dims));
}

/// The tensor reshaped to `shape`; the tensor itself if it has that shape, as in most nets.
inline TensorId with_shape(Program& p, TensorId id, const Shape& shape) {
  return p.shape(id) == shape ? id : p.reshaped(id, shape);
}

/// Sets the shapes and parameters of a convolution or a transposed convolution: bottoms of equal
/// shape, as many tops, and weights shared by all of them. geometry(bottom) returns the
/// convolution, which maps bottom to top or, if transposed, top to bottom.
template <class Geometry>
Status shape_convolution(LayerShapes& s, const caffe::ConvolutionParameter& p, bool transposed,
                         const Geometry& geometry) {
  if (s.bottoms.size() != s.tops.size()) return invalid_argument("needs as many tops as bottoms");
  for (size_t i = 0; i < s.bottoms.size(); ++i) {
    if (!(s.bottoms[i] == s.bottoms[0])) {
      return invalid_argument("all bottoms must have one shape: " + s.bottoms[i].str() + " and " +
                              s.bottoms[0].str());
    }
  }
  const Shape& bottom = s.bottoms[0];
  CFT_ASSIGN(const ConvGeometry g, geometry(bottom));
  CFT_ASSIGN(const int axis, bottom.axis(p.axis()));
  std::vector<int64_t> dims(bottom.dims().begin(), bottom.dims().begin() + axis);
  dims.push_back(p.depthwise() ? bottom[axis] : p.num_output());
  const std::vector<int64_t>& spatial = transposed ? g.in : g.out;
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  for (Shape& top : s.tops) top = Shape(dims);
  s.params.push_back({image_shape(g.outputs, g.channels / g.group, g.kernel), p.weight_filler()});
  if (p.bias_term()) s.params.push_back({Shape{dims[size_t(axis)]}, p.bias_filler()});
  return {};
}

}  // namespace cafetiere
