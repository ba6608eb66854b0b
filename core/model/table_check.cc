// SPDX-License-Identifier: Apache-2.0
#include "core/model/table_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>

namespace cafetiere {
namespace {

using TableColumn = caffe::TableDataParameter::Column;

/// Values of a label, over all its columns.
int64_t numbers_of(std::span<const TableColumn> labels) {
  int64_t numbers = 0;
  for (const TableColumn& label : labels) numbers += int64_t(label.size());
  return numbers;
}

bool is_label(const TableColumn& column) {
  return column.kind() == TableColumn::CLASS || column.kind() == TableColumn::FLAGS ||
         column.kind() == TableColumn::NUMBER;
}

/// Whether predictions, which are float32, can tell a label's numbers apart: their steps are to be
/// below 1 % of its standard deviation.
Status check_numbers(const TableColumn& label) {
  for (int i = 0; i < std::min(label.mean_size(), label.scale_size()); ++i) {
    const double mean = std::abs(label.mean(i)), scale = label.scale(i);
    if (scale <= 0) continue;  // all are equal
    if (mean + 10 / scale > double(std::numeric_limits<float>::max())) {
      return invalid_argument(fmt::format(
          "the label '{}' has numbers near {:.3g}, which are too large for float32, the "
          "format of predictions: learn them in another unit",
          label.name(), std::max(mean, 1 / scale)));
    }
    if (mean * scale * double(std::numeric_limits<float>::epsilon()) <= 0.01) continue;
    return invalid_argument(fmt::format(
        "the label '{}' has a mean of {:.10g} and a standard deviation of {:.3g}, which "
        "predictions in float32 cannot tell apart: subtract the mean from the label",
        label.name(), label.mean(i), 1 / scale));
  }
  return {};
}

Status check(std::span<const TableColumn> labels) {
  if (labels.empty()) return invalid_argument("a table needs a label");
  for (const TableColumn& label : labels) {
    if (!is_label(label) || label.missing_flag()) {
      return invalid_argument(
          fmt::format("the label '{}' must be classes, flags or numbers, without missing values",
                      label.name()));
    }
    if (labels.size() > 1 && label.kind() != TableColumn::NUMBER) {
      return invalid_argument(
          fmt::format("the label '{}' is not the only one: several must be numbers", label.name()));
    }
    if (label.kind() == TableColumn::CLASS && label.value_size() < 2) {
      return invalid_argument(fmt::format(
          "the label '{}' {}; at least two classes are needed", label.name(),
          label.value_size() == 0 ? "has no values"
                                  : fmt::format("is \"{}\" in all rows", label.value(0))));
    }
    CFT_TRY(check_numbers(label));
  }
  return {};
}

Status check_loss(std::span<const TableColumn> labels, const TableNetOptions& options) {
  const std::string& loss = options.loss;
  if (loss != "squared" && loss != "huber" && loss != "quantile") {
    return invalid_argument(
        fmt::format("loss \"{}\" is none of squared, huber and quantile", loss));
  }
  if (loss != "squared" && labels.front().kind() != TableColumn::NUMBER) {
    return invalid_argument(fmt::format("loss \"{}\" is one of numbers, and '{}' names classes",
                                        loss, labels.front().name()));
  }
  if (loss != "quantile") return {};
  const auto is_share = [](float q) { return q > 0 && q < 1; };
  if (options.quantiles.empty() || !std::ranges::all_of(options.quantiles, is_share)) {
    return invalid_argument("quantiles: a list of numbers between 0 and 1");
  }
  if (std::set(options.quantiles.begin(), options.quantiles.end()).size() <
      options.quantiles.size()) {
    return invalid_argument("quantiles: one is given twice");
  }
  if (numbers_of(labels) == 1) return {};
  return invalid_argument("loss \"quantile\" is one of a single number: train a model each");
}

}  // namespace

Status check_table_net(std::span<const TableColumn> features, const TableTarget& target,
                       const TableNetOptions& options) {
  if (features.empty()) return invalid_argument("a table needs a column to learn from");
  for (const TableColumn& column : features) {
    if (column.kind() == TableColumn::CLASS || column.kind() == TableColumn::FLAGS) {
      return invalid_argument(fmt::format("column '{}': {} is for labels; use CATEGORY or NUMBER",
                                          column.name(), TableColumn::Kind_Name(column.kind())));
    }
    if (column.kind() == TableColumn::IMAGE && column.shape_size() != 3) {
      return invalid_argument(fmt::format(
          "column '{}': an IMAGE needs a shape of channels, height and width", column.name()));
    }
  }
  CFT_TRY(check(target.labels));
  CFT_TRY(check_loss(target.labels, options));
  if (std::ranges::any_of(options.layers, [](int64_t units) { return units < 1; })) {
    return invalid_argument("layers: a hidden layer needs at least one unit");
  }
  if (!(options.dropout >= 0 && options.dropout < 1)) {
    return invalid_argument("dropout must be at least 0 and below 1");
  }
  if (options.members > 1 && options.hidden.layer_size() > 0) {
    return invalid_argument("members: a given net has one; use layers for several");
  }
  if (options.batch < 1) return invalid_argument("a batch needs at least one row");
  return {};
}

int64_t scores_of(std::span<const TableColumn> labels, const TableNetOptions& options) {
  if (labels.front().kind() == TableColumn::CLASS) return labels.front().value_size();
  return options.loss == "quantile" ? int64_t(options.quantiles.size()) : numbers_of(labels);
}

}  // namespace cafetiere
