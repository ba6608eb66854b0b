// SPDX-License-Identifier: Apache-2.0
#include "core/capi/row_axes.h"

#include <algorithm>

namespace cafetiere::capi {
namespace {

/// One layer of a net with the shapes and the row axes of all blobs.
class RowPaths {
 public:
  RowPaths(const std::vector<Shape>& shapes, const std::vector<int>& axes)
      : shapes_(shapes), axes_(axes) {}

  /// Whether the layer keeps the rows of its bottoms apart in top `top`.
  bool keeps_apart(const Node& node, int top) const {
    const auto has_rows = [this](int blob) { return axes_[size_t(blob)] >= 0; };
    if (std::ranges::none_of(node.bottoms, has_rows)) return true;
    if (!has_rows(node.bottoms[0]) || !has_rows(top)) return false;
    if (!node.type->rows_apart) return false;
    const size_t from = size_t(node.bottoms[0]), to = size_t(top);
    return node.type->rows_apart(node.param, {shapes_[from], axes_[from], shapes_[to], axes_[to]});
  }

 private:
  const std::vector<Shape>& shapes_;
  const std::vector<int>& axes_;
};

}  // namespace

std::vector<int> row_axes(const Graph& graph, int64_t batch, const std::vector<Shape>& shapes) {
  const auto more = graph.infer(batch + 1);  // not every net can: one may reshape to fixed sizes
  std::vector<int> axes;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::vector<int64_t>& dims = shapes[i].dims();
    if (more.ok()) {
      const auto axis = std::ranges::mismatch(dims, (*more)[i].dims()).in1;
      axes.push_back(axis == dims.end() ? -1 : int(axis - dims.begin()));
    } else {
      axes.push_back(!dims.empty() && dims[0] == batch ? 0 : -1);
    }
  }
  return axes;
}

bool rows_are_apart(const Graph& graph, const std::vector<Shape>& shapes,
                    const std::vector<int>& row_axes, const std::vector<std::string>& outputs) {
  const RowPaths paths(shapes, row_axes);
  std::vector<bool> needed(graph.blob_names().size(), false);
  for (const std::string& output : outputs) {
    const size_t blob = size_t(graph.find_blob(output));
    if (row_axes[blob] < 0) return false;
    needed[blob] = true;
  }
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    for (int top : node.tops) {
      if (!needed[size_t(top)]) continue;
      if (!paths.keeps_apart(node, top)) return false;
      for (int bottom : node.bottoms) needed[size_t(bottom)] = true;
    }
  }
  return true;
}

}  // namespace cafetiere::capi
