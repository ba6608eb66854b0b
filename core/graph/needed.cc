// SPDX-License-Identifier: Apache-2.0
#include "core/graph/needed.h"

#include <algorithm>

namespace cafetiere {

std::vector<bool> needed_nodes(const Graph& graph, std::span<const int> blobs) {
  std::vector<bool> needed(graph.nodes().size()), wanted(graph.blob_names().size());
  for (const int blob : blobs) wanted[size_t(blob)] = true;
  for (size_t n = needed.size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    needed[n] = std::ranges::any_of(node.tops, [&](int top) { return wanted[size_t(top)]; });
    if (!needed[n]) continue;
    for (const int bottom : node.bottoms) wanted[size_t(bottom)] = true;
  }
  return needed;
}

}  // namespace cafetiere
