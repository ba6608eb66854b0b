// SPDX-License-Identifier: Apache-2.0
// ExternalLayer: a layer that runs on blobs in plain memory, not as steps of a plan: one from outside
// the engine (Python), or one whose tops take their shapes from values (Filter).
#pragma once

#include <span>
#include <vector>

#include "core/graph/layer.h"

namespace cafetiere {

/// A blob as such a layer sees it: row-major, both parts writable.
struct BlobView {
  Shape shape;
  float* data = nullptr;
  float* diff = nullptr;

  bool operator==(const BlobView&) const = default;
};

/// Only Net runs these layers: a plan's blobs have fixed shapes and places.
class ExternalLayer : public Layer {
 public:
  using Layer::Layer;

  Status forward(LoweringContext&) const override {
    return invalid_argument("a " + param().type() +
                            " layer runs only in nets and solvers of the Python package");
  }

  /// Gives the parameters their first values; once, after their fillers.
  virtual Status first_values(std::span<const BlobView>) const { return {}; }
  /// Corrects the shapes that shape() has set for the tops by the bottoms' current values.
  virtual Status shape_by_values(std::span<const BlobView> /*bottoms*/,
                                 std::span<Shape> /*tops*/) const {
    return {};
  }
  virtual Status run_forward(std::span<const BlobView> bottoms, std::span<const BlobView> tops,
                             std::span<const BlobView> params) const = 0;
  /// Overwrites the gradients of the bottoms that `propagate_down` marks, adds to the parameters'.
  virtual Status run_backward(std::span<const BlobView> tops,
                              const std::vector<bool>& propagate_down,
                              std::span<const BlobView> bottoms,
                              std::span<const BlobView> params) const = 0;
};

}  // namespace cafetiere
