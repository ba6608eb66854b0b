// SPDX-License-Identifier: Apache-2.0
// DetectionLayer: a layer whose tops list a variable number of boxes. In a net that runs layer by
// layer, the tops have as many rows as there are boxes; in a plan, whose blobs have fixed sizes,
// they have the maximum number of rows, and unused rows at the end are filled with -1.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "core/device/row_major.h"
#include "core/graph/external_layer.h"

namespace cafetiere {

class DetectionLayer : public ExternalLayer {
 public:
  using ExternalLayer::ExternalLayer;
  /// Returns the values of each top for the bottoms' shapes and values.
  using Detect = std::function<std::vector<std::vector<float>>(
      const std::vector<Shape>&, const std::vector<const float*>&, size_t tops)>;

  Status forward(LoweringContext& plan) const override {
    std::vector<Shape> shapes;
    for (size_t i = 0; i < plan.bottoms.size(); ++i) shapes.push_back(plan.bottom_shape(i));
    std::vector<TensorId> tops;
    std::vector<int64_t> room;
    for (size_t i = 0; i < plan.tops.size(); ++i) {
      tops.push_back(plan.new_top(i));
      room.push_back(plan.top_shapes[i].count());
    }
    serial_step(
        plan.program, plan.step("forward"), plan.bottoms, tops,
        [shapes, room, detect = detector()](const auto& in, const auto& out, const RunContext&) {
          const auto found = detect(shapes, in, out.size());
          for (size_t i = 0; i < out.size(); ++i) {
            const int64_t used = std::min(room[i], int64_t(found[i].size()));
            std::copy_n(found[i].data(), used, out[i]);
            std::fill(out[i] + used, out[i] + room[i], -1.F);
          }
        });
    return {};
  }

  Status shape_by_values(std::span<const BlobView> bottoms, std::span<Shape> tops) const override {
    const auto found = run(bottoms, tops.size());
    for (size_t i = 0; i < tops.size(); ++i) {
      const int64_t values = tops[i].count() / tops[i][row_axis()];
      tops[i][row_axis()] = int64_t(found[i].size()) / values;
    }
    return {};
  }

  Status run_forward(std::span<const BlobView> bottoms, std::span<const BlobView> tops,
                     std::span<const BlobView>) const override {
    const auto found = run(bottoms, tops.size());
    for (size_t i = 0; i < tops.size(); ++i) std::ranges::copy(found[i], tops[i].data);
    return {};
  }

  /// Detections have no gradient.
  Status backward(LoweringContext&) const override { return {}; }
  Status run_backward(std::span<const BlobView>, const std::vector<bool>& propagate_down,
                      std::span<const BlobView> bottoms, std::span<const BlobView>) const override {
    for (size_t i = 0; i < bottoms.size(); ++i) {
      if (propagate_down[i]) std::fill_n(bottoms[i].diff, bottoms[i].shape.count(), 0.F);
    }
    return {};
  }

 protected:
  virtual Detect detector() const = 0;
  /// The axis of the tops that counts the boxes.
  virtual int row_axis() const = 0;

 private:
  std::vector<std::vector<float>> run(std::span<const BlobView> bottoms, size_t tops) const {
    std::vector<Shape> shapes;
    std::vector<const float*> values;
    for (const BlobView& bottom : bottoms) {
      shapes.push_back(bottom.shape);
      values.push_back(bottom.data);
    }
    return detector()(shapes, values, tops);
  }
};

}  // namespace cafetiere
