// SPDX-License-Identifier: Apache-2.0
// ExternalLayer: a layer that runs on blobs in plain memory, not as steps of a plan: a layer
// defined outside the engine (Python), or one whose tops' shapes depend on values (Filter).
#pragma once

#include <span>
#include <vector>

#include "core/graph/layer.h"

namespace cafetiere {

/// A blob as passed to such a layer: row-major, data and gradient writable.
struct BlobView {
  Shape shape;
  float* data = nullptr;
  float* diff = nullptr;

  bool operator==(const BlobView&) const = default;
};

/// Only Net can run these layers: a plan's blobs have fixed shapes and addresses.
class ExternalLayer : public Layer {
 public:
  using Layer::Layer;

  Status forward(LoweringContext&) const override {
    return invalid_argument("a " + param().type() +
                            " layer runs only in nets and solvers of the Python package");
  }

  /// Initialises the parameters; called once, after their fillers.
  virtual Status first_values(std::span<const BlobView>) const { return {}; }
  /// Updates the shapes of the tops, which shape() has set, for the current values of the bottoms.
  virtual Status shape_by_values(std::span<const BlobView> /*bottoms*/,
                                 std::span<Shape> /*tops*/) const {
    return {};
  }
  virtual Status run_forward(std::span<const BlobView> bottoms, std::span<const BlobView> tops,
                             std::span<const BlobView> params) const = 0;
  /// Overwrites the gradients of the bottoms marked in `propagate_down`, adds to those of the
  /// parameters.
  virtual Status run_backward(std::span<const BlobView> tops,
                              const std::vector<bool>& propagate_down,
                              std::span<const BlobView> bottoms,
                              std::span<const BlobView> params) const = 0;
};

}  // namespace cafetiere
