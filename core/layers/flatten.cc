// SPDX-License-Identifier: Apache-2.0
// Flatten: merges the axes [axis, end_axis] into one.
#include "core/layers/reshaping.h"

namespace cafetiere {
namespace {

class Flatten : public ReshapingLayer {
 public:
  using ReshapingLayer::ReshapingLayer;

  Status shape(LayerShapes& s) const override {
    const Shape& b = s.bottoms[0];
    CFT_ASSIGN(const int first, b.axis(param().flatten_param().axis()));
    CFT_ASSIGN(const int last, b.axis(param().flatten_param().end_axis()));
    if (last < first) return invalid_argument("end_axis must not come before axis");
    std::vector<int64_t> dims(b.dims().begin(), b.dims().begin() + first);
    dims.push_back(b.count(first, last + 1));
    dims.insert(dims.end(), b.dims().begin() + last + 1, b.dims().end());
    s.tops[0] = Shape(std::move(dims));
    return {};
  }
};

}  // namespace

extern const LayerType layer_flatten{.name = "Flatten",
                                     .create = create_layer<Flatten>,
                                     .any_format = true,
                                     .rows_apart = ReshapingLayer::keeps_rows};

}  // namespace cafetiere
