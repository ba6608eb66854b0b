// SPDX-License-Identifier: Apache-2.0
// A model of a table in a folder, as Python's fit or Spark has saved it.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/data/row_schema.h"

namespace cafetiere {

struct SavedTable {
  std::string net;                    ///< prototxt, with the state that predicts
  std::string weights;                ///< path
  std::string output = "prediction";  ///< the blob of what is predicted; of classes "probability"
  std::vector<Column> columns;        ///< to predict from
  std::vector<std::string> classes;   ///< of the label, in the order of the output
  std::vector<double> quantiles;      ///< that are predicted, if any
  /// By which the probabilities of classes are divided, or above which labels hold; or none.
  std::vector<double> thresholds;
};

/// Errors: a folder without a model, a model of no table, columns of which a text cannot be a cell.
Result<SavedTable> read_saved_table(const std::string& folder);

}  // namespace cafetiere
