// SPDX-License-Identifier: Apache-2.0
// The weights of classes in a loss, computed from the statistics of a table.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/data/table_statistics.h"
#include "core/data/table_values.h"

namespace cafetiere {

using TableColumn = caffe::TableDataParameter::Column;

namespace {

Status check_class_weight(const std::string& name, double weight) {
  if (weight >= 0 && std::isfinite(weight)) return {};
  return invalid_argument(
      fmt::format("the weight {} of class \"{}\" is not a number of 0 or more", weight, name));
}

}  // namespace

Result<TableColumn> TableStatistics::class_weights(size_t i, const ClassWeights& weights) const {
  const Counted& column = columns_[i];
  if (column.request.kind() == TableColumn::FLAGS) return flag_weights(column, weights);
  TableColumn out;
  out.set_name(column.request.name());
  out.set_kind(TableColumn::WEIGHT);
  const std::vector<std::string> names = class_names(column.values);
  for (const auto& [name, weight] : weights.given) {
    if (std::ranges::find(names, name) == names.end()) {
      return invalid_argument(
          fmt::format("class weights name \"{}\", which is none of the classes "
                      "of column \"{}\": {}",
                      name, out.name(), fmt::join(names, ", ")));
    }
    CFT_TRY(check_class_weight(name, weight));
  }
  const auto given = [&](const std::string& name) {
    const auto found = weights.given.find(name);
    return found == weights.given.end() ? 1.0 : found->second;
  };
  // The total weight of a class's rows without its class weight.
  const auto rows_of = [&](const std::string& name) {
    const auto found = column.weights.find(name);
    return found == column.weights.end() ? double(column.values.at(name))
                                         : found->second.value().high;
  };
  double sum = 0;
  for (const std::string& name : names) {
    const double rows = rows_of(name), weight = weights.balanced ? 1 / rows : given(name);
    out.add_value(name);
    out.add_scale(rows > 0 ? weight : 0);
    sum += rows * out.scale(out.scale_size() - 1);
  }
  if (!(sum > 0)) {
    return invalid_argument(fmt::format("column \"{}\": all rows weigh 0", out.name()));
  }
  for (double& scale : *out.mutable_scale()) scale *= double(rows_) / sum;
  return out;
}

Result<TableColumn> TableStatistics::flag_weights(const Counted& column,
                                                  const ClassWeights& weights) const {
  const size_t labels = column.numbers.size();
  std::vector<double> of_one(labels, 1);
  for (const auto& [name, weight] : weights.given) {
    const std::optional<double> number = as_number(name);
    if (!number || *number < 0 || *number >= double(labels) || *number != std::floor(*number)) {
      return invalid_argument(
          fmt::format("class weights name \"{}\"; the labels of column \"{}\" are called 0 to {}, "
                      "by their place",
                      name, column.request.name(), labels - 1));
    }
    CFT_TRY(check_class_weight(name, weight));
    of_one[size_t(*number)] = weight;
  }
  TableColumn out;
  out.set_name(column.request.name());
  out.set_kind(TableColumn::WEIGHT);
  out.set_size(uint32_t(labels));
  const double all =
      weight_ < 0 ? double(rows_) : columns_[size_t(weight_)].numbers[0].sum.value().high;
  double sum = 0;
  for (size_t i = 0; i < labels; ++i) {
    const double ones = column.numbers[i].sum.value().high, zeros = all - ones;
    const bool differ = weights.balanced && ones > 0 && zeros > 0;
    out.add_scale(differ ? all / (2 * zeros) : 1);
    out.add_scale(differ ? all / (2 * ones) : of_one[i]);
    sum += zeros * out.scale(int(2 * i)) + ones * out.scale(int(2 * i + 1));
  }
  if (!(sum > 0)) {
    return invalid_argument(fmt::format("column \"{}\": all rows weigh 0", out.name()));
  }
  for (double& scale : *out.mutable_scale()) scale *= double(rows_) * double(labels) / sum;
  return out;
}

}  // namespace cafetiere
