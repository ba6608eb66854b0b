// SPDX-License-Identifier: Apache-2.0
// Binds the columns of a table to the tops of a net's data layer.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/comm/group.h"
#include "core/data/row_table.h"
#include "core/data/rows_source.h"
#include "core/graph/graph.h"

namespace cafetiere {

/// (top, column) pairs; empty = tops and columns of the same name.
using InputBindings = std::vector<std::pair<std::string, std::string>>;

/// The layer of a net that rows feed: its first source.
struct FedLayer {
  const Node* node = nullptr;
  std::vector<RowsInput> inputs;  ///< one per top
  int64_t batch = 0;              ///< rows, as in the net
};

/// Finds the fed layer and the column of each top. With `optional_labels` a top without a column
/// reads as zeros unless it is the first.
Result<FedLayer> bind_rows(const Graph& graph, const RowSchema& schema,
                           const InputBindings& bindings, bool optional_labels);

/// Partitions the rows of all ranks into shards, checks each row, and makes the source that feeds
/// `layer`. An error of any rank is returned by all, so that none mistakes it for a lost peer.
Result<std::unique_ptr<RowsSource>> make_rows_source(Group* group, RowTable&& rows, int shards,
                                                     const FedLayer& layer, bool train,
                                                     uint64_t seed);

/// The first rank's error, on every rank; success when all succeeded.
Status agree(Group* group, const Status& mine);

}  // namespace cafetiere
