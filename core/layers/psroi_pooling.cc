// SPDX-License-Identifier: Apache-2.0
// PSROIPooling (R-FCN, Dai et al. 2016): bin (h, w) of output c is the mean over that bin of a
// region in input channel (c group + h) group + w. Bottoms: features (N, output_dim group_size^2,
// H, W), regions (R, 5) as for ROIPooling; top (R, output_dim, group_size, group_size). An empty
// bin gives 0.
#include <fmt/format.h>

#include "core/device/row_major.h"
#include "core/graph/layer.h"
#include "core/layers/region.h"

namespace cafetiere {
namespace {

struct PositionPool {
  int64_t images, channels, height, width;
  int64_t regions, outputs, group;
  float scale;

  int64_t pixels() const { return height * width; }
  int64_t bins() const { return group * group; }

  /// The positions of the bins of a region.
  struct Grid {
    float x, y, bin_w, bin_h;
  };
  /// Coordinates are rounded first, then scaled.
  Grid grid(const float* region) const {
    const float x1 = std::round(bounded(region[1])) * scale;
    const float y1 = std::round(bounded(region[2])) * scale;
    const float x2 = (std::round(bounded(region[3])) + 1) * scale;
    const float y2 = (std::round(bounded(region[4])) + 1) * scale;
    return {x1, y1, std::max(x2 - x1, 0.1F) / float(group), std::max(y2 - y1, 0.1F) / float(group)};
  }
  Span rows(const Grid& g, int64_t h) const { return bin(g.y, g.bin_h, h, height); }
  Span columns(const Grid& g, int64_t w) const { return bin(g.x, g.bin_w, w, width); }
  /// The plane that bin (h, w) of output c reads.
  int64_t plane(int64_t image, int64_t c, int64_t h, int64_t w) const {
    return image * channels + (c * group + h) * group + w;
  }

 private:
  static Span bin(float start, float size, int64_t i, int64_t map) {
    return cut(int64_t(std::floor(float(i) * size + start)),
               int64_t(std::ceil(float(i + 1) * size + start)), map);
  }
};

class PSROIPooling : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    CFT_ASSIGN(const PositionPool g, geometry(s.bottoms[0], s.bottoms[1]));
    s.tops[0] = {g.regions, g.outputs, g.group, g.group};
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    CFT_ASSIGN(const PositionPool g, geometry(plan.bottom_shape(0), plan.bottom_shape(1)));
    range_step(plan.program, plan.step("forward"), {plan.bottoms[0], plan.bottoms[1]},
               {plan.new_top(0)}, g.regions * g.outputs,
               [=](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
                 for (int64_t i = begin; i < end; ++i) {
                   pool(g, in[1] + i / g.outputs * kRegionValues, i % g.outputs, in[0],
                        out[0] + i * g.bins());
                 }
               });
    return {};
  }

  /// A bin's gradient is distributed equally over its pixels, region by region.
  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    CFT_ASSIGN(const PositionPool g, geometry(plan.bottom_shape(0), plan.bottom_shape(1)));
    range_step(plan.program, plan.step("backward"), {plan.top_diffs[0], plan.bottoms[1]},
               {plan.new_bottom_diff(0)}, g.images * g.channels,
               [=](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
                 for (int64_t plane = begin; plane < end; ++plane) {
                   spread(g, in[1], plane, in[0], out[0] + plane * g.pixels());
                 }
               });
    return {};
  }

 private:
  static void pool(const PositionPool& g, const float* region, int64_t c, const float* features,
                   float* top) {
    const int64_t image = index_below(region[0], g.images);
    const PositionPool::Grid grid = g.grid(region);
    for (int64_t h = 0; h < g.group; ++h) {
      const Span rows = g.rows(grid, h);
      for (int64_t w = 0; w < g.group; ++w, ++top) {
        const Span columns = g.columns(grid, w);
        *top = 0;
        if (image < 0 || rows.empty() || columns.empty()) continue;
        const float* plane = features + g.plane(image, c, h, w) * g.pixels();
        double sum = 0;
        for (int64_t y = rows.begin; y < rows.end; ++y) {
          for (int64_t x = columns.begin; x < columns.end; ++x) sum += plane[y * g.width + x];
        }
        *top = float(sum / double((rows.end - rows.begin) * (columns.end - columns.begin)));
      }
    }
  }

  static void spread(const PositionPool& g, const float* regions, int64_t plane, const float* dy,
                     float* dx) {
    const int64_t image = plane / g.channels, bin = plane % g.channels;
    const int64_t h = bin / g.group % g.group, w = bin % g.group;
    std::fill_n(dx, g.pixels(), 0.F);
    for (int64_t r = 0; r < g.regions; ++r) {
      const float* region = regions + r * kRegionValues;
      if (index_below(region[0], g.images) != image) continue;
      const PositionPool::Grid grid = g.grid(region);
      const Span rows = g.rows(grid, h), columns = g.columns(grid, w);
      if (rows.empty() || columns.empty()) continue;
      const float area = float((rows.end - rows.begin) * (columns.end - columns.begin));
      const float share = dy[r * g.outputs * g.bins() + bin] / area;
      for (int64_t y = rows.begin; y < rows.end; ++y) {
        for (int64_t x = columns.begin; x < columns.end; ++x) dx[y * g.width + x] += share;
      }
    }
  }

  Result<PositionPool> geometry(const Shape& features, const Shape& regions) const {
    const caffe::PSROIPoolingParameter& p = param().psroi_pooling_param();
    if (!(p.spatial_scale() > 0) || p.output_dim() <= 0 || p.group_size() <= 0) {
      return invalid_argument("give spatial_scale, output_dim and group_size, all above 0");
    }
    const int64_t wanted = int64_t{p.output_dim()} * p.group_size() * p.group_size();
    if (features.axes() != 4 || features[1] != wanted) {
      return invalid_argument(
          fmt::format("needs features (N, {}, H, W), output_dim * group_size^2 channels, not {}",
                      wanted, features.str()));
    }
    CFT_TRY(check_regions(regions));
    return PositionPool{features[0], features[1],    features[2],    features[3],
                        regions[0],  p.output_dim(), p.group_size(), p.spatial_scale()};
  }
};

}  // namespace

extern const LayerType layer_psroi_pooling{.name = "PSROIPooling",
                                           .min_bottoms = 2,
                                           .max_bottoms = 2,
                                           .create = create_layer<PSROIPooling>,
                                           .no_label = true};

}  // namespace cafetiere
