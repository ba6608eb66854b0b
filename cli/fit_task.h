// SPDX-License-Identifier: Apache-2.0
// What `cafetiere fit` learns: which columns of a table, as what, and on which rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/csv_table.h"
#include "core/base/status.h"

namespace cafetiere {

struct FitFlags {
  std::string table, label, out, test;
  std::string features, drop, categorical;  ///< names, separated by commas
  std::string learn;                        ///< "classes", "numbers", or "": as found
  std::string layers = "64,32", net;
  int64_t epochs = 50, batch = 256, seed = 1, patience = 0;
  double lr = 0.003, huber_delta = 1, validation = 0, tol = 0;
  int threads = 1;
  std::string weight, class_weights, loss = "squared", quantiles;
};

struct FitTask {
  std::vector<Column> columns;     ///< those to learn from, then the label, then the weight
  std::vector<std::string> kinds;  ///< of each, as cft_table_create() names them
  size_t features = 0;             ///< how many are to learn from
  bool classes = false;            ///< whether the label names classes
  std::vector<int64_t> layers;
  std::vector<double> quantiles;
};

/// Errors: columns that are not there, flags that do not go together.
Result<FitTask> fit_task(const CsvTable& table, const FitFlags& flags);

/// Rows as the C interface takes them.
struct EncodedRows {
  int64_t count = 0;
  std::vector<std::byte> chunk;
};

/// All rows of a table. An error: a column that it has not, or a cell of another type.
Result<EncodedRows> encode_rows(const CsvTable& table, const std::vector<Column>& columns);

struct SplitRows {
  EncodedRows train, held_out;
};

/// Holds rows back by a hash of their bytes, so that equal rows stay together. An error: a part that is
/// wanted has none.
Result<SplitRows> split_rows(const CsvTable& table, const std::vector<Column>& columns,
                             double validation);

}  // namespace cafetiere
