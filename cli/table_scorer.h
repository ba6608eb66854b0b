// SPDX-License-Identifier: Apache-2.0
// What a model of a table says of encoded rows, through the C interface.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "cli/c_handles.h"
#include "cli/saved_table.h"

namespace cafetiere {

/// The schema of rows of these columns, as the interface wants it.
nlohmann::json schema_of(const std::vector<Column>& columns);

class TableScorer {
 public:
  static Result<TableScorer> open(SavedTable model, int threads);

  const SavedTable& model() const { return model_; }
  /// Numbers a row of what is computed.
  int64_t width() const { return width_; }
  /// Whether a row has any number of labels, each of which holds or does not.
  bool has_several_labels() const {
    return model_.output != "prediction" && model_.classes.empty();
  }
  /// Whether several numbers are predicted, none of which stands for the others.
  bool has_several_numbers() const;
  /// What rows that append_cell() encoded get: width() numbers each.
  Result<std::vector<float>> score(int64_t rows, const std::vector<std::byte>& chunk) const;
  /// The place of a row's prediction: its most probable class, or the quantile nearest to a half.
  /// By thresholds the class with the largest quotient, as Spark ML's classifiers say.
  size_t best(std::span<const float> row) const;
  /// The places of a row's labels that hold: those above their thresholds, by default 0.5.
  std::vector<size_t> held(std::span<const float> row) const;

 private:
  SavedTable model_;
  Handle<cft_predictor> predictor_;
  int64_t width_ = 1;
};

}  // namespace cafetiere
