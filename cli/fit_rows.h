// SPDX-License-Identifier: Apache-2.0
// The rows of a table as the engine takes them, and which of them `cafetiere fit` holds back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cli/csv_table.h"
#include "cli/fit_task.h"
#include "core/base/status.h"

namespace cafetiere {

/// Rows as the C interface takes them.
struct EncodedRows {
  int64_t count = 0;
  std::vector<std::byte> chunk;
};

/// All rows of a table. An error: a column that it has not, or a cell of another type.
Result<EncodedRows> encode_rows(const CsvTable& table, const std::vector<Column>& columns);

constexpr int64_t kFewestToHoldBack = 100;  ///< rows of a table, where no flag asks for it

struct SplitRows {
  EncodedRows train, held_out;
  std::vector<size_t> held_out_places;  ///< in the table
};

/// Holds rows back by a hash of their bytes, so that equal rows stay together. A class of which all rows
/// would be held back is trained on. Without flags a tenth is held back of tables of 100 rows or more, or
/// nothing where that leaves one part empty; where a flag asks for both parts, it is an error then.
Result<SplitRows> split_rows(const CsvTable& table, const FitTask& task, const FitFlags& flags);

/// The epochs without a better one after which training ends; 0: it does not end early. Without a flag
/// that is so for fewer than 1,500 rows: what is held back of them is too little to judge an epoch by.
int64_t patience_of(const FitFlags& flags, const SplitRows& rows);

}  // namespace cafetiere
