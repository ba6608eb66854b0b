// SPDX-License-Identifier: Apache-2.0
// Input: declares the blobs that the caller fills before each pass. No bottoms, one top per blob.
#include "core/layers/source.h"

namespace cafetiere {
namespace {

class Input : public SourceLayer {
 public:
  using SourceLayer::SourceLayer;

  Status declared(size_t top, size_t tops, Shape& shape) const override {
    const caffe::InputParameter& p = param().input_param();
    if (p.shape_size() == 0) {
      return invalid_argument("no shape is known; give input_param { shape { dim: .. } }");
    }
    if (p.shape_size() != 1 && p.shape_size() != int(tops)) {
      return invalid_argument("input_param needs no shape, one shape or one for each top");
    }
    const auto& dims = p.shape(p.shape_size() == 1 ? 0 : int(top)).dim();
    shape = Shape(std::vector<int64_t>(dims.begin(), dims.end()));
    return {};
  }
};

}  // namespace

extern const LayerType layer_input{.name = "Input",
                                   .min_bottoms = 0,
                                   .max_bottoms = 0,
                                   .max_tops = -1,
                                   .create = create_layer<Input>,
                                   .source = true,
                                   .inputs = true};

}  // namespace cafetiere
