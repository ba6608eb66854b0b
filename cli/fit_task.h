// SPDX-License-Identifier: Apache-2.0
// What `cafetiere fit` learns: which columns of a table, as what, and on which rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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
  int64_t members = 1, epochs = 50, batch = 256, seed = 1;
  double lr = 0.003, huber_delta = 1, tol = 0;
  std::optional<double> validation;  ///< none: see split_rows()
  std::optional<int64_t> patience;   ///< none: see patience_of()
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
  int64_t patience = 0;  ///< epochs without a better one that end the training; 0: none do
};

/// Errors: columns that are not there, labels that are missing or all the same, flags that do not go
/// together.
Result<FitTask> fit_task(const CsvTable& table, const FitFlags& flags);

/// An error for the first cell of a label, if there is one, that is no number.
Status check_numbers(const CsvTable& table, const std::string& label);

}  // namespace cafetiere
