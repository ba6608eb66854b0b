// SPDX-License-Identifier: Apache-2.0
// BoxAnnotatorOHEM (R-FCN): selects the roi_per_img regions of each image with the largest losses;
// earlier ones win ties. Bottoms: regions (R, 5), their losses (R), labels (R), weights (R, ..);
// tops: the labels, ignore_label for regions not selected, and the weights, 0 for those. No
// gradient.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/device/row_major.h"
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

class BoxAnnotatorOHEM : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    if (param().box_annotator_ohem_param().roi_per_img() == 0) {
      return invalid_argument("give roi_per_img, above 0");
    }
    const Shape& regions = s.bottoms[0];
    if (regions.axes() < 1 || regions[0] == 0 || regions.count(1) < 1) {
      return invalid_argument("needs regions (R, 5), not " + regions.str());
    }
    const Shape &losses = s.bottoms[1], &labels = s.bottoms[2], &weights = s.bottoms[3];
    if (losses.count() != regions[0] || labels.count() != regions[0] ||
        weights.count() % regions[0] != 0) {
      return invalid_argument(fmt::format(
          "needs a loss, a label and a row of weights for each of the {} regions, not {}, {}, {}",
          regions[0], losses.str(), labels.str(), weights.str()));
    }
    s.tops[0] = labels;
    s.tops[1] = weights;
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    const Shape& regions = plan.bottom_shape(0);
    const int64_t count = regions[0], values = regions.count(1);
    const int64_t row = plan.bottom_shape(3).count() / count;
    const caffe::BoxAnnotatorOHEMParameter& p = param().box_annotator_ohem_param();
    serial_step(plan.program, plan.step("forward"), plan.bottoms,
                {plan.new_top(0), plan.new_top(1)},
                [=, kept = size_t(p.roi_per_img()), ignore = float(p.ignore_label())](
                    const auto& in, const auto& out, const RunContext&) {
                  std::copy_n(in[2], count, out[0]);
                  std::copy_n(in[3], count * row, out[1]);
                  for (const int64_t r : others(in[0], values, in[1], count, kept)) {
                    out[0][r] = ignore;
                    std::fill_n(out[1] + r * row, row, 0.F);
                  }
                });
    return {};
  }

  Status backward(LoweringContext&) const override { return {}; }

 private:
  /// The regions that are not among the `kept` with the largest losses of their image.
  static std::vector<int64_t> others(const float* regions, int64_t values, const float* losses,
                                     int64_t count, size_t kept) {
    std::map<float, std::vector<int64_t>> images;
    for (int64_t r = 0; r < count; ++r) images[regions[r * values]].push_back(r);
    std::vector<int64_t> others;
    for (auto& [image, of_image] : images) {
      std::ranges::stable_sort(of_image,
                               [&](int64_t a, int64_t b) { return losses[a] > losses[b]; });
      if (of_image.size() > kept) {
        others.insert(others.end(), of_image.begin() + int64_t(kept), of_image.end());
      }
    }
    return others;
  }
};

}  // namespace

extern const LayerType layer_box_annotator_ohem{.name = "BoxAnnotatorOHEM",
                                                .min_bottoms = 4,
                                                .max_bottoms = 4,
                                                .min_tops = 2,
                                                .max_tops = 2,
                                                .create = create_layer<BoxAnnotatorOHEM>};

}  // namespace cafetiere
