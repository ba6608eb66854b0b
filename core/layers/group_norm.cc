// SPDX-License-Identifier: Apache-2.0
// GroupNorm: normalises groups of consecutive channels of an image to zero mean and unit variance,
// then applies a learned scale and shift per channel (Wu & He 2018). Bottom and top: (N, C, ..).
// Blobs: [scale (C), shift (C)].
#include <fmt/format.h>

#include "core/layers/row_norm.h"

namespace cafetiere {
namespace {

class GroupNorm : public RowNorm {
 public:
  using RowNorm::RowNorm;

 protected:
  Result<View> view(const Shape& bottom) const override {
    const caffe::GroupNormParameter& p = param().group_norm_param();
    if (bottom.axes() < 2) {
      return invalid_argument("needs a bottom of at least 2 axes, not " + bottom.str());
    }
    const int64_t channels = bottom[1], pixels = bottom.count(2);
    if (p.group() < 1 || channels % p.group()) {
      return invalid_argument(
          fmt::format("group_norm_param: group {} must divide the {} channels of bottom {}",
                      p.group(), channels, bottom.str()));
    }
    const int64_t rows = bottom[0] * p.group();
    return View{{1, rows, channels / p.group() * pixels},
                {bottom[0], channels, pixels},
                {channels},
                p.eps(),
                p.scale_bias()};
  }
};

}  // namespace

extern const LayerType layer_group_norm{
    .name = "GroupNorm",
    .create = create_layer<GroupNorm>,
    .rows_apart = [](const caffe::LayerParameter&, const RowPath& rows) {
      return rows.bottom_axis < 1;
    }};

}  // namespace cafetiere
