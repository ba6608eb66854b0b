// SPDX-License-Identifier: Apache-2.0
#include "core/plan/fusion.h"

#include <algorithm>

namespace cafetiere {

// A blob has at most one reader, so a single pass finds every pair.
std::vector<Fusion> choose_fusions(const Graph& graph, const Folds& folds,
                                   const std::vector<bool>& needed, const std::vector<int>& kept) {
  std::vector<Fusion> fusions(graph.nodes().size());
  // Per blob: the node that could apply such a layer to it.
  std::vector<int> relu_by(graph.blob_names().size(), -1), scale_by(relu_by);
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (!needed[n] || node.tops.size() != 1) continue;
    const auto has = [&](auto property) { return property && property(node.param); };
    const auto top = size_t(node.tops[0]);
    if (folds.into(n) >= 0) {
      fusions[n].applied = true;
      relu_by[top] = folds.into(n);
      continue;
    }
    if (node.type->applies_relu) relu_by[top] = int(n);
    if (has(node.type->applies_scale)) scale_by[top] = int(n);
    if (node.bottoms.size() != 1 || std::ranges::find(kept, node.bottoms[0]) != kept.end())
      continue;
    const auto bottom = size_t(node.bottoms[0]);
    if (has(node.type->is_relu) && relu_by[bottom] >= 0) {
      fusions[size_t(relu_by[bottom])].relu = true;
      fusions[n].applied = true;
    } else if (has(node.type->is_channel_scale) && scale_by[bottom] >= 0) {
      fusions[size_t(scale_by[bottom])].scale = int(n);
      fusions[n].applied = true;
    }
  }
  return fusions;
}

}  // namespace cafetiere
