// SPDX-License-Identifier: Apache-2.0
// PriorBox: SSD's default boxes around the pixels of a feature map (Liu et al. 2016). Bottoms: the
// map (N, C, H, W), the images; top (1, 2, 4 H W P): the boxes in coordinates relative to the
// image, then their variances. min_size and max_size are truncated to integers, as in SSD;
// PriorBoxClustered's width and height are not.
#include <fmt/format.h>

#include <cmath>

#include "core/device/row_major.h"
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

using PriorParam = caffe::PriorBoxParameter;

/// Width and height in pixels of the image.
using Sizes = std::vector<std::pair<double, double>>;

class PriorBox : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    CFT_TRY(check());
    CFT_ASSIGN(const Grid g, grid(s.bottoms[0], s.bottoms[1]));
    s.tops[0] = {1, 2, g.height * g.width * int64_t(sizes().size()) * 4};
    return {};
  }

  /// The boxes depend only on the shapes.
  Status forward(LoweringContext& plan) const override {
    CFT_ASSIGN(const Grid g, grid(plan.bottom_shape(0), plan.bottom_shape(1)));
    serial_step(plan.program, plan.step("forward"), {}, {plan.new_top(0)},
                [values = values(g)](const auto&, const auto& out, const RunContext&) {
                  std::ranges::copy(values, out[0]);
                });
    return {};
  }

  Status backward(LoweringContext&) const override { return {}; }

 private:
  struct Grid {
    int64_t height, width;
    double image_h, image_w, step_h, step_w;
  };

  const PriorParam& prior() const { return param().prior_box_param(); }

  Status check() const {
    const PriorParam& p = prior();
    if (p.width_size() > 0 || p.height_size() > 0) {
      if (p.width_size() != p.height_size()) {
        return invalid_argument("width and height must be given equally often");
      }
    } else if (p.min_size_size() == 0) {
      return invalid_argument("give min_size, or width and height");
    }
    if (p.max_size_size() > 0 && p.max_size_size() != p.min_size_size()) {
      return invalid_argument("max_size is given once for each min_size, or not at all");
    }
    for (int i = 0; i < p.min_size_size(); ++i) {
      const bool ordered = i >= p.max_size_size() || p.max_size(i) > p.min_size(i);
      if (!(p.min_size(i) >= 1) || !ordered) {
        return invalid_argument("min_size must be at least 1 and below its max_size");
      }
    }
    for (const float ratio : p.aspect_ratio()) {
      if (!(ratio > 0)) return invalid_argument("aspect_ratio must be above 0");
    }
    const bool variances = p.variance_size() <= 1 || p.variance_size() == 4;
    if (!variances || std::ranges::any_of(p.variance(), [](float v) { return !(v > 0); })) {
      return invalid_argument("give one variance or four, above 0");
    }
    return {};
  }

  Result<Grid> grid(const Shape& map, const Shape& images) const {
    const PriorParam& p = prior();
    if (map.axes() != 4 || images.axes() != 4) {
      return invalid_argument("needs a feature map and images of 4 axes (N, C, H, W), not " +
                              map.str() + " and " + images.str());
    }
    if (p.has_img_size() && (p.has_img_h() || p.has_img_w())) {
      return invalid_argument("give img_size, or img_h and img_w");
    }
    if (p.has_step() && (p.has_step_h() || p.has_step_w())) {
      return invalid_argument("give step, or step_h and step_w");
    }
    const bool given = p.has_img_h() && p.has_img_w();
    Grid g{map[2], map[3], double(images[2]), double(images[3]), p.step_h(), p.step_w()};
    if (p.has_img_size()) g.image_h = g.image_w = p.img_size();
    if (given) g.image_h = p.img_h(), g.image_w = p.img_w();
    if (p.has_step()) g.step_h = g.step_w = p.step();
    if (!(g.step_h > 0 && g.step_w > 0)) {
      g.step_h = g.image_h / double(g.height), g.step_w = g.image_w / double(g.width);
    }
    if (!(g.image_h > 0 && g.image_w > 0)) return invalid_argument("the image has no size");
    return g;
  }

  /// 1, then the given ratios, each followed by its inverse if flip is set; no duplicates.
  std::vector<double> ratios() const {
    std::vector<double> ratios{1};
    for (const float given : prior().aspect_ratio()) {
      const double ratio = given;
      if (std::ranges::any_of(ratios, [&](double r) { return std::fabs(r - ratio) < 1e-6; })) {
        continue;
      }
      ratios.push_back(ratio);
      if (prior().flip()) ratios.push_back(1 / ratio);
    }
    return ratios;
  }

  /// The sizes of the boxes around a pixel.
  Sizes sizes() const {
    const PriorParam& p = prior();
    Sizes sizes;
    for (int i = 0; i < p.width_size(); ++i) sizes.emplace_back(p.width(i), p.height(i));
    if (!sizes.empty()) return sizes;
    for (int i = 0; i < p.min_size_size(); ++i) {
      const double least = std::trunc(p.min_size(i));
      sizes.emplace_back(least, least);
      if (i < p.max_size_size()) {
        const double side = std::sqrt(least * std::trunc(p.max_size(i)));
        sizes.emplace_back(side, side);
      }
      for (const double ratio : ratios()) {
        if (std::fabs(ratio - 1) < 1e-6) continue;
        sizes.emplace_back(least * std::sqrt(ratio), least / std::sqrt(ratio));
      }
    }
    return sizes;
  }

  std::vector<float> values(const Grid& g) const {
    const PriorParam& p = prior();
    std::vector<float> values;
    const Sizes sizes = this->sizes();
    for (int64_t row = 0; row < g.height; ++row) {
      const double y = (double(row) + p.offset()) * g.step_h;
      for (int64_t column = 0; column < g.width; ++column) {
        const double x = (double(column) + p.offset()) * g.step_w;
        for (const auto& [w, h] : sizes) {
          for (const double edge : {(x - w / 2) / g.image_w, (y - h / 2) / g.image_h,
                                    (x + w / 2) / g.image_w, (y + h / 2) / g.image_h}) {
            values.push_back(float(p.clip() ? std::clamp(edge, 0.0, 1.0) : edge));
          }
        }
      }
    }
    const size_t boxes = values.size();
    for (size_t i = 0; i < boxes; ++i) {
      values.push_back(
          p.variance_size() == 0 ? 0.1F : p.variance(p.variance_size() == 1 ? 0 : int(i % 4)));
    }
    return values;
  }
};

}  // namespace

extern const LayerType layer_prior_box{
    .name = "PriorBox", .min_bottoms = 2, .max_bottoms = 2, .create = create_layer<PriorBox>};

}  // namespace cafetiere
