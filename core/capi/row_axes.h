// SPDX-License-Identifier: Apache-2.0
// Where the rows of a batch lie in a net's blobs, and whether the net keeps them apart.
#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace cafetiere::capi {

/// The axis of each blob that grows with the batch: the first as a rule, the second of what an LSTM
/// gives; -1 of a blob that does not grow, such as a loss. `shapes` is what `graph` infers for
/// `batch`.
std::vector<int> row_axes(const Graph& graph, int64_t batch, const std::vector<Shape>& shapes);

/// Whether a row's values in `outputs` (names of blobs) depend on no other row of the batch, and lie
/// where the row does. False where that is not known of a layer's type.
bool rows_are_apart(const Graph& graph, const std::vector<Shape>& shapes,
                    const std::vector<int>& row_axes, const std::vector<std::string>& outputs);

}  // namespace cafetiere::capi
