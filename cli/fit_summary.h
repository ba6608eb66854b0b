// SPDX-License-Identifier: Apache-2.0
// What `cafetiere fit` says: of the table, of the training, of how well rows are predicted. The lines are
// those of python/cafetiere/_fit.py.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/csv_table.h"
#include "cli/fit_rows.h"
#include "cli/fit_task.h"
#include "cli/table_scorer.h"
#include "cli/table_training.h"
#include "core/base/status.h"

namespace cafetiere {

/// A line on what is learned from what.
std::string table_line(const CsvTable& table, const FitTask& task, const FitFlags& flags);

/// Lines on columns that are texts by few of their cells.
std::string text_lines(const CsvTable& table, const FitTask& task);

/// Lines on the net and the training; `held_out`: those of the table's `rows` that it was tested on.
Result<std::string> training_lines(const TrainedTable& trained, const FitTask& task,
                                   const FitFlags& flags, int64_t held_out, int64_t rows);

/// Lines on where the model is, and how to predict with it.
std::string folder_lines(const std::string& folder);

/// The predictions for the rows of a table, beside their labels.
class ScoredTable {
 public:
  /// rows: those of the table, encoded as the scorer's model wants them.
  static Result<ScoredTable> of(const TableScorer& scorer, const CsvTable& table,
                                const EncodedRows& rows, const std::string& label);

  /// How well all rows that have a label are predicted.
  std::string all() const;
  /// The same of some rows, beside the best that is to be had without looking at columns.
  std::string some(std::span<const size_t> places) const;

 private:
  std::string measured(std::span<const size_t> places) const;

  bool is_of_classes_ = false;
  std::vector<size_t> labelled_;         // places of rows that have a label
  std::vector<std::string> labels_;      // of all rows
  std::vector<bool> is_right_;           // of classes
  std::vector<double> values_, errors_;  // of numbers
};

}  // namespace cafetiere
