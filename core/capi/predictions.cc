// SPDX-License-Identifier: Apache-2.0
#include "core/capi/predictions.h"

#include <algorithm>

namespace cafetiere::capi {

std::vector<std::string> predictions(const Graph& graph) {
  std::vector<bool> used(graph.blob_names().size(), false);  // by more than losses and scores
  std::vector<std::string> names;
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    const auto is_used = [&](int top) { return used[size_t(top)]; };
    const bool end = std::none_of(node.tops.begin(), node.tops.end(), is_used);
    if (node.type->loss || node.type->score || node.tops.empty()) continue;
    if (node.type->identity && end) continue;
    for (int bottom : node.bottoms) used[size_t(bottom)] = true;
    if (node.inserted) continue;
    for (size_t i = 0; i < node.tops.size() && !node.type->source; ++i) {
      if (!is_used(node.tops[i])) names.push_back(graph.blob_names()[size_t(node.tops[i])]);
    }
  }
  std::reverse(names.begin(), names.end());
  return names;
}

}  // namespace cafetiere::capi
