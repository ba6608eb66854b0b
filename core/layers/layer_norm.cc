// SPDX-License-Identifier: Apache-2.0
// LayerNorm: normalises over all axes from `axis` on to zero mean and unit variance, then applies a
// learned scale and shift of the shape of these axes (Ba et al. 2016). Top: the bottom's shape.
// Blobs: [scale, shift].
#include "core/layers/row_norm.h"

namespace cafetiere {
namespace {

class LayerNorm : public RowNorm {
 public:
  using RowNorm::RowNorm;

 protected:
  Result<View> view(const Shape& bottom) const override {
    const caffe::LayerNormParameter& p = param().layer_norm_param();
    CFT_ASSIGN(const int axis, bottom.axis(p.axis()));
    const int64_t rows = bottom.count(0, axis), values = bottom.count(axis);
    Shape scale(std::vector<int64_t>(bottom.dims().begin() + axis, bottom.dims().end()));
    return View{{1, rows, values}, {rows, values}, std::move(scale), p.eps(), p.scale_bias()};
  }
};

}  // namespace

extern const LayerType layer_layer_norm{
    .name = "LayerNorm",
    .create = create_layer<LayerNorm>,
    .rows_apart = [](const caffe::LayerParameter& param, const RowPath& rows) {
      return !rows.from(param.layer_norm_param().axis());
    }};

}  // namespace cafetiere
