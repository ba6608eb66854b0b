// SPDX-License-Identifier: Apache-2.0
// The nodes that blobs depend on.
#pragma once

#include <span>
#include <vector>

#include "core/graph/graph.h"

namespace cafetiere {

/// Whether each node computes one of the blobs, or something that they are computed from.
std::vector<bool> needed_nodes(const Graph& graph, std::span<const int> blobs);

}  // namespace cafetiere
