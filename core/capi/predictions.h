// SPDX-License-Identifier: Apache-2.0
// What a net is asked for when nobody says.
#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace cafetiere::capi {

/// The blobs that only losses, scores and layers without tops read, in the net's order.
std::vector<std::string> predictions(const Graph& graph);

}  // namespace cafetiere::capi
