// SPDX-License-Identifier: Apache-2.0
// Python: a layer implemented by a Python class. It runs in nets and solvers of the Python package,
// which replace this object with their own (GraphOptions::make_foreign).
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

class Python : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes&) const override { return unavailable_here(); }
  Status forward(LoweringContext&) const override { return unavailable_here(); }

 private:
  Status unavailable_here() const {
    return invalid_argument("class '" + param().python_param().layer() + "' of module '" +
                            param().python_param().module() +
                            "' is Python; use the net from Python, where this layer can run");
  }
};

}  // namespace

extern const LayerType layer_python{.name = "Python",
                                    .min_bottoms = 0,
                                    .max_bottoms = -1,
                                    .min_tops = 0,
                                    .max_tops = -1,
                                    .create = create_layer<Python>,
                                    .foreign = true};

}  // namespace cafetiere
