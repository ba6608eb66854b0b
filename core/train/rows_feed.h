// SPDX-License-Identifier: Apache-2.0
// Binds the columns of a table to the tops of a net's data layers.
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

/// The host's settings for the rows that feed a net.
struct InputBindings {
  std::vector<std::pair<std::string, std::string>> columns =
      {};                     ///< (top, column); other tops are matched by name
  MeanFiles mean_files = {};  ///< other mean files are read from this machine
};

/// The tops that rows feed: those of all data layers of a net.
struct FedTops {
  std::vector<RowsInput> inputs;  ///< in net order
  int64_t batch = 0;              ///< rows per batch, as in the net

  std::vector<std::string> names() const;
};

/// Finds the column of each top of the data layers, all of which must have the same batch size.
/// With `optional`, a top without a column reads as zeros, provided that rows feed at least one top
/// and all columns in `bindings` exist.
Result<FedTops> bind_rows(const Graph& graph, const RowSchema& schema,
                          const InputBindings& bindings, bool optional);

/// An error if a column is bound to a name that is not a top of a data layer in the training net or
/// in the test net (may be null).
Status check_bindings(const InputBindings& bindings, const Graph& train, const Graph* test);

/// Partitions the rows of all ranks into shards, checks each row, and creates the source that feeds
/// `tops`. An error of any rank is returned on all ranks, so that none takes it for a lost peer.
Result<std::unique_ptr<RowsSource>> make_rows_source(Group* group, RowTable&& rows, int shards,
                                                     const FedTops& tops, bool train,
                                                     uint64_t seed);

/// Returns the first rank's error on every rank; success if all succeeded.
Status agree(Group* group, const Status& mine);

}  // namespace cafetiere
