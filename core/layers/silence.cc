// SPDX-License-Identifier: Apache-2.0
// Silence: consumes blobs that nothing else reads, so that they are not outputs of the net. Their
// gradient is 0.
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

class Silence : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes&) const override { return {}; }
  Status forward(LoweringContext&) const override { return {}; }
  Status backward(LoweringContext&) const override { return {}; }
};

}  // namespace

extern const LayerType layer_silence{.name = "Silence",
                                     .max_bottoms = -1,
                                     .min_tops = 0,
                                     .max_tops = 0,
                                     .create = create_layer<Silence>};

}  // namespace cafetiere
