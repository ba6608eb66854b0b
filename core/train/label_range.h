// SPDX-License-Identifier: Apache-2.0
// The valid labels of a net.
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace cafetiere {

/// The range of the labels in a blob, according to the losses and accuracies that read it; one
/// without an ignored label takes precedence. `shapes` as returned by graph.infer().
LabelRange label_range(const Graph& graph, const std::vector<Shape>& shapes, int blob);

}  // namespace cafetiere
