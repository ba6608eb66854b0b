// SPDX-License-Identifier: Apache-2.0
#include "core/train/label_range.h"

#include <set>

namespace cafetiere {

LabelRange label_range(const Graph& graph, const std::vector<Shape>& shapes, int blob) {
  LabelRange found;
  std::set<int> aliases{blob};
  for (const Node& node : graph.nodes()) {
    if (node.type->identity && aliases.count(node.bottoms[0])) {
      aliases.insert(node.tops.begin(), node.tops.end());
    }
    if (!node.type->labels || !aliases.count(node.bottoms[1])) continue;
    const LabelRange range = node.type->labels(node.param, shapes[size_t(node.bottoms[0])]);
    if (range.classes > 0 && !range.ignored) return range;
    if (found.classes == 0) found = range;
  }
  return found;
}

}  // namespace cafetiere
