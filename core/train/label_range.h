// SPDX-License-Identifier: Apache-2.0
// What the labels of a net may be.
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace cafetiere {

/// The range of the labels in a blob, from the losses and accuracies that compare it with scores: one
/// that ignores nothing has its way. `shapes` as graph.infer gives them.
LabelRange label_range(const Graph& graph, const std::vector<Shape>& shapes, int blob);

}  // namespace cafetiere
