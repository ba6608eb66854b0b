// SPDX-License-Identifier: Apache-2.0
#include "core/model/table_decay.h"

#include <algorithm>
#include <cmath>

namespace cafetiere {
namespace {

using TableColumn = caffe::TableDataParameter::Column;

double rows_of_value(const TableColumn& column, const TableNetOptions& options) {
  const auto found = options.rows_of_value.find(column.name());
  return found == options.rows_of_value.end() ? 1 : std::max(1.0, found->second);
}

/// The reduction of a factor for epochs of many steps. Weight decay determines how many steps a
/// weight remembers, so it is reduced for longer epochs (Wang and Aitchison, 2024); the square root
/// is empirical.
double share_of_long_epochs(const TableColumn& column, const TableNetOptions& options) {
  constexpr double kSteps = 350;
  const double steps =
      rows_of_value(column, options) * column.value_size() / double(options.step_rows);
  return std::min(1.0, std::sqrt(kSteps / steps));
}

}  // namespace

bool has_own_layers(const TableColumn& column, const TableNetOptions& options) {
  constexpr int kValues = 100;
  constexpr double kRows = 50;
  return options.step_rows > 0 && options.hidden.layer_size() == 0 && !options.layers.empty() &&
         column.value_size() >= kValues && rows_of_value(column, options) >= kRows;
}

float embedding_decay(const TableColumn& column, const TableNetOptions& options) {
  constexpr double kAlone = 190, kBeforeOwnLayers = 57, kMost = 3000;
  const double factor = has_own_layers(column, options)
                            ? kBeforeOwnLayers * share_of_long_epochs(column, options)
                            : kAlone;
  const double root = std::sqrt(double(options.step_rows) / rows_of_value(column, options));
  return float(std::clamp(factor * root, 1.0, kMost));
}

float hidden_decay(const TableColumn& column, const TableNetOptions& options) {
  constexpr double kFactor = 30;
  return float(kFactor * share_of_long_epochs(column, options));
}

}  // namespace cafetiere
