// OpenLayer: a layer that is run from outside the engine (Python), on blobs in plain memory.
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

/// Only Net runs these layers: the steps of a plan cannot fail in mid-run, but these may.
class OpenLayer : public Layer {
 public:
  using Layer::Layer;

  Status forward(LayerPlan&) const override {
    return invalid_argument("a " + param().type() +
                            " layer runs only in nets and solvers of the Python package");
  }

  /// Gives the parameters their first values; once, after their fillers.
  virtual Status first_values(std::span<const BlobView> params) const = 0;
  virtual Status run_forward(std::span<const BlobView> bottoms, std::span<const BlobView> tops,
                             std::span<const BlobView> params) const = 0;
  /// Overwrites the gradients of the bottoms that `propagate_down` marks, adds to the parameters'.
  virtual Status run_backward(std::span<const BlobView> tops,
                              const std::vector<bool>& propagate_down,
                              std::span<const BlobView> bottoms,
                              std::span<const BlobView> params) const = 0;
};

}  // namespace cafetiere
