// SPDX-License-Identifier: Apache-2.0
// Filter: passes the rows of its bottoms whose selector, the last bottom, is not 0. Their number is
// known only at run time, so only Net can run it; a plan rejects it.
#include <fmt/format.h>

#include <algorithm>

#include "core/graph/external_layer.h"

namespace cafetiere {
namespace {

class Filter : public ExternalLayer {
 public:
  using ExternalLayer::ExternalLayer;

  /// Shapes for the case that all rows pass.
  Status shape(LayerShapes& s) const override {
    if (s.tops.size() + 1 != s.bottoms.size()) {
      return invalid_argument(fmt::format(
          "{} tops for {} bottoms: it gives one for each bottom but the last, the selector",
          s.tops.size(), s.bottoms.size()));
    }
    const Shape& selector = s.bottoms.back();
    if (selector.axes() < 1 || selector.count() != selector[0]) {
      return invalid_argument("the selector has the shape " + selector.str() +
                              ", but takes one value a row");
    }
    for (size_t i = 0; i < s.tops.size(); ++i) {
      s.tops[i] = s.bottoms[i];
      if (s.bottoms[i].axes() > 0 && s.bottoms[i][0] == selector[0]) continue;
      return invalid_argument(fmt::format("bottom {} has the shape {}, but the selector {} rows", i,
                                          s.bottoms[i].str(), selector[0]));
    }
    return {};
  }

  Status forward(LoweringContext&) const override {
    return invalid_argument(
        "a Filter layer makes blobs whose size depends on their values, but a plan's blobs have "
        "fixed sizes; run it in a net or solver of the Python package, drop the rows before they "
        "are fed, or keep them and give them the ignore_label of the loss");
  }

  Status shape_by_values(std::span<const BlobView> bottoms, std::span<Shape> tops) const override {
    const auto rows = int64_t(kept(bottoms.back()).size());
    for (Shape& top : tops) top[0] = rows;
    return {};
  }

  Status run_forward(std::span<const BlobView> bottoms, std::span<const BlobView> tops,
                     std::span<const BlobView>) const override {
    const std::vector<int64_t> rows = kept(bottoms.back());
    for (size_t i = 0; i < tops.size(); ++i) {
      const int64_t size = tops[i].shape.count(1);
      for (size_t r = 0; r < rows.size(); ++r) {
        std::copy_n(bottoms[i].data + rows[r] * size, size, tops[i].data + int64_t(r) * size);
      }
    }
    return {};
  }

  /// Rows that did not pass have zero gradient; the selector has no gradient.
  Status run_backward(std::span<const BlobView> tops, const std::vector<bool>& propagate_down,
                      std::span<const BlobView> bottoms, std::span<const BlobView>) const override {
    const std::vector<int64_t> rows = kept(bottoms.back());
    for (size_t i = 0; i < tops.size(); ++i) {
      if (!propagate_down[i]) continue;
      const int64_t size = tops[i].shape.count(1);
      std::fill_n(bottoms[i].diff, bottoms[i].shape.count(), 0.f);
      for (size_t r = 0; r < rows.size(); ++r) {
        std::copy_n(tops[i].diff + int64_t(r) * size, size, bottoms[i].diff + rows[r] * size);
      }
    }
    return {};
  }

 private:
  static std::vector<int64_t> kept(const BlobView& selector) {
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < selector.shape.count(); ++i) {
      if (selector.data[i] != 0) rows.push_back(i);
    }
    return rows;
  }
};

}  // namespace

extern const LayerType layer_filter{.name = "Filter",
                                    .min_bottoms = 2,
                                    .max_bottoms = -1,
                                    .max_tops = -1,
                                    .create = create_layer<Filter>};

}  // namespace cafetiere
