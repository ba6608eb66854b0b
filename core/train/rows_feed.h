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

/// What a host says of the rows that feed a net.
struct InputBindings {
  std::vector<std::pair<std::string, std::string>> columns =
      {};                     ///< of tops; others: by their names
  MeanFiles mean_files = {};  ///< others are files of this machine
};

/// The tops of a net that rows feed: those of all its data layers.
struct FedTops {
  std::vector<RowsInput> inputs;  ///< in the net's order
  int64_t batch = 0;              ///< rows, as in the net

  std::vector<std::string> names() const;
};

/// Finds the column of each top of the data layers; all take batches of as many rows. With `optional`
/// a top without a column reads as zeros, as long as rows feed one and those of `bindings` are there.
Result<FedTops> bind_rows(const Graph& graph, const RowSchema& schema,
                          const InputBindings& bindings, bool optional);

/// An error if a column is bound to what is no top of a data layer, neither of the net that is trained
/// nor of that to test with, which may be null.
Status check_bindings(const InputBindings& bindings, const Graph& train, const Graph* test);

/// Partitions the rows of all ranks into shards, checks each row, and makes the source that feeds
/// `tops`. An error of any rank is returned by all, so that none mistakes it for a lost peer.
Result<std::unique_ptr<RowsSource>> make_rows_source(Group* group, RowTable&& rows, int shards,
                                                     const FedTops& tops, bool train,
                                                     uint64_t seed);

/// The first rank's error, on every rank; success when all succeeded.
Status agree(Group* group, const Status& mine);

}  // namespace cafetiere
