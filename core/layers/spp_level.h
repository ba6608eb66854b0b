// SPDX-License-Identifier: Apache-2.0
// The levels of an SPP layer as Pooling layers.
#pragma once

#include "core/model/proto/caffe.pb.h"
#include "core/tensor/shape.h"

namespace cafetiere {

/// The Pooling layer for level `level` of `spp`: 2^level x 2^level bins of a bottom (N, C, H, W).
/// All bins have the same size, so the bottom is padded on both sides to a multiple of it.
inline caffe::LayerParameter spp_level(const caffe::LayerParameter& spp, const Shape& bottom,
                                       int64_t level) {
  const int64_t bins = int64_t{1} << level;
  const auto kernel = [&](int axis) { return (bottom[axis] + bins - 1) / bins; };
  const auto pad = [&](int axis) { return (kernel(axis) * bins - bottom[axis] + 1) / 2; };
  caffe::LayerParameter layer;
  layer.set_name(spp.name());
  layer.set_type("Pooling");
  caffe::PoolingParameter& p = *layer.mutable_pooling_param();
  p.set_pool(caffe::PoolingParameter::PoolMethod(spp.spp_param().pool()));
  p.set_kernel_h(uint32_t(kernel(2)));
  p.set_kernel_w(uint32_t(kernel(3)));
  p.set_stride_h(uint32_t(kernel(2)));
  p.set_stride_w(uint32_t(kernel(3)));
  p.set_pad_h(uint32_t(pad(2)));
  p.set_pad_w(uint32_t(pad(3)));
  return layer;
}

}  // namespace cafetiere
