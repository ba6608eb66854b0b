// SPDX-License-Identifier: Apache-2.0
// ROIPooling: the maximum over each of pooled_h x pooled_w bins of a region (Girshick 2015).
// Bottoms: features (N, C, H, W), regions (R, 5): image, x1, y1, x2, y2 in pixels of the image; top
// (R, C, pooled_h, pooled_w). Regions include their corner pixels. An empty bin, and a region whose
// image index is out of range, give 0.
#include <fmt/format.h>

#include "core/device/row_major.h"
#include "core/graph/layer.h"
#include "core/layers/region.h"

namespace cafetiere {
namespace {

struct RegionPool {
  int64_t images, channels, height, width;
  int64_t regions, pooled_h, pooled_w;
  float scale;

  int64_t pixels() const { return height * width; }
  int64_t bins() const { return pooled_h * pooled_w; }

  /// The maximum of every bin of a plane and its pixel; 0 and -1 for an empty bin.
  void pool(const float* region, const float* plane, float* top, float* at) const {
    const float x1 = corner(region[1]), y1 = corner(region[2]);
    const float bin_w = std::max(corner(region[3]) - x1 + 1, 1.F) / float(pooled_w);
    const float bin_h = std::max(corner(region[4]) - y1 + 1, 1.F) / float(pooled_h);
    for (int64_t h = 0; h < pooled_h; ++h) {
      const Span rows = bin(bin_h, h, y1, height);
      for (int64_t w = 0; w < pooled_w; ++w) {
        const Span columns = bin(bin_w, w, x1, width);
        maximum(plane, rows, columns, top++, at++);
      }
    }
  }

 private:
  float corner(float coordinate) const { return std::round(bounded(coordinate * scale)); }

  /// Bin i of an axis, rounded before it is shifted to the region's start.
  static Span bin(float size, int64_t i, float start, int64_t map) {
    const auto begin = int64_t(std::floor(float(i) * size) + start);
    const auto end = int64_t(std::ceil(float(i + 1) * size) + start);
    return cut(begin, end, map);
  }

  void maximum(const float* plane, Span rows, Span columns, float* top, float* at) const {
    *top = 0, *at = -1;
    if (rows.empty() || columns.empty()) return;
    int64_t best = rows.begin * width + columns.begin;
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      for (int64_t x = columns.begin; x < columns.end; ++x) {
        if (plane[y * width + x] > plane[best]) best = y * width + x;
      }
    }
    *top = plane[best], *at = float(best);
  }
};

class ROIPooling : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    CFT_ASSIGN(const RegionPool g, geometry(s.bottoms[0], s.bottoms[1]));
    s.tops[0] = {g.regions, g.channels, g.pooled_h, g.pooled_w};
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    CFT_ASSIGN(const RegionPool g, geometry(plan.bottom_shape(0), plan.bottom_shape(1)));
    const TensorId at = plan.new_tensor("index", plan.top_shapes[0]);
    plan.saved = {at};
    range_step(plan.program, plan.step("forward"), {plan.bottoms[0], plan.bottoms[1]},
               {plan.new_top(0), at}, g.regions * g.channels,
               [=](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
                 for (int64_t i = begin; i < end; ++i) {
                   const float* region = in[1] + i / g.channels * kRegionValues;
                   const int64_t image = index_below(region[0], g.images);
                   float *top = out[0] + i * g.bins(), *best = out[1] + i * g.bins();
                   if (image < 0) {
                     std::fill_n(top, g.bins(), 0.F);
                     std::fill_n(best, g.bins(), -1.F);
                     continue;
                   }
                   const int64_t plane = image * g.channels + i % g.channels;
                   g.pool(region, in[0] + plane * g.pixels(), top, best);
                 }
               });
    return {};
  }

  /// A pixel gets the gradients of the bins of which it is the maximum, region by region.
  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    CFT_ASSIGN(const RegionPool g, geometry(plan.bottom_shape(0), plan.bottom_shape(1)));
    range_step(plan.program, plan.step("backward"),
               {plan.top_diffs[0], plan.saved[0], plan.bottoms[1]}, {plan.new_bottom_diff(0)},
               g.images * g.channels,
               [=](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
                 std::fill_n(out[0] + begin * g.pixels(), (end - begin) * g.pixels(), 0.F);
                 for (int64_t r = 0; r < g.regions; ++r) {
                   const int64_t image = index_below(in[2][r * kRegionValues], g.images);
                   if (image < 0) continue;
                   const int64_t first = std::max(begin, image * g.channels);
                   const int64_t last = std::min(end, (image + 1) * g.channels);
                   for (int64_t plane = first; plane < last; ++plane) {
                     const int64_t top = (r * g.channels + plane % g.channels) * g.bins();
                     for (int64_t b = top; b < top + g.bins(); ++b) {
                       const float at = in[1][b];
                       if (at >= 0) out[0][plane * g.pixels() + int64_t(at)] += in[0][b];
                     }
                   }
                 }
               });
    return {};
  }

 private:
  Result<RegionPool> geometry(const Shape& features, const Shape& regions) const {
    const caffe::ROIPoolingParameter& p = param().roi_pooling_param();
    if (features.axes() != 4) {
      return invalid_argument("needs features of 4 axes (N, C, H, W), not " + features.str());
    }
    CFT_TRY(check_regions(regions));
    if (p.pooled_size_size() > 2) {
      return invalid_argument("give pooled_size once, or height and width");
    }
    const bool sizes = p.pooled_size_size() > 0;
    const int64_t h = sizes ? p.pooled_size(0) : p.pooled_h();
    const int64_t w = sizes ? p.pooled_size(p.pooled_size_size() - 1) : p.pooled_w();
    if (h == 0 || w == 0) return invalid_argument("give pooled_h and pooled_w, above 0");
    if (features[2] * features[3] > (1 << 24)) {
      return invalid_argument("the features have too many pixels for their indices: " +
                              features.str());
    }
    return RegionPool{features[0], features[1], features[2], features[3],
                      regions[0],  h,           w,           p.spatial_scale()};
  }
};

}  // namespace

extern const LayerType layer_roi_pooling{.name = "ROIPooling",
                                         .min_bottoms = 2,
                                         .max_bottoms = 2,
                                         .create = create_layer<ROIPooling>,
                                         .no_label = true};

}  // namespace cafetiere
