// Filter: Caffe's layer that lets those rows of its bottoms through whose selector, the last bottom,
// is not 0. How many they are is known only while a net runs, but a plan's shapes are fixed before:
// a net with this layer is refused, and told the ways that lead to the same loss.
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

class Filter : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes&) const override {
    return invalid_argument(
        "a Filter layer makes blobs whose size depends on their values, but blobs have fixed "
        "sizes here; drop the rows before they are fed, or keep them and give them the "
        "ignore_label of the loss");
  }
  Status forward(LayerPlan&) const override { return {}; }
};

}  // namespace

extern const LayerType layer_filter{.name = "Filter",
                                    .min_bottoms = 2,
                                    .max_bottoms = -1,
                                    .min_tops = 1,
                                    .max_tops = -1,
                                    .create = create_layer<Filter>};

}  // namespace cafetiere
