// SPDX-License-Identifier: Apache-2.0
#include "cli/fit_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "core/data/table_values.h"

namespace cafetiere {
namespace {

/// What stands between commas; names may begin with a space.
std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    if (comma > 0) parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

/// The columns that a flag names, each of which must be there.
Result<std::vector<std::string>> named_columns(const CsvTable& table, const std::string& text) {
  std::vector<std::string> names;
  for (const std::string& name : parts_of(text)) {
    CFT_TRY(table.find(name).status());
    if (!contains(names, name)) names.push_back(name);
  }
  return names;
}

/// The columns to learn from, in their order.
Result<std::vector<std::string>> features_of(const CsvTable& table, const FitFlags& flags) {
  CFT_ASSIGN(std::vector<std::string> features, named_columns(table, flags.features));
  CFT_ASSIGN(const std::vector<std::string> dropped, named_columns(table, flags.drop));
  const auto is_target = [&](const std::string& name) {
    return name == flags.label || (!flags.weight.empty() && name == flags.weight);
  };
  for (const std::string& name : features) {
    if (is_target(name)) {
      return invalid_argument(fmt::format(
          "column \"{}\" is the label or the weight: take it out of the features", name));
    }
  }
  if (features.empty()) features = table.names;
  std::erase_if(features,
                [&](const auto& name) { return is_target(name) || contains(dropped, name); });
  if (features.empty()) return invalid_argument("there is no column to learn from");
  if (contains(features, "")) {
    const auto unnamed = std::ranges::find(table.names, "") - table.names.begin();
    return invalid_argument(fmt::format(
        "{}: column {} has no name; name it in the first line, or the columns to learn from by "
        "--features",
        table.path, unnamed + 1));
  }
  return features;
}

const char* kind_of(ColumnType type) {
  return type == ColumnType::kF64   ? "NUMBER"
         : type == ColumnType::kI32 ? "DATE"
         : type == ColumnType::kI64 ? "TIMESTAMP"
                                    : "CATEGORY";
}

Result<std::vector<int64_t>> layers_of(const std::string& text) {
  std::vector<int64_t> layers;
  for (const std::string& part : parts_of(text)) {
    int64_t units = 0;
    const char* const end = part.data() + part.size();
    if (const auto read = std::from_chars(part.data(), end, units);
        read.ec != std::errc() || read.ptr != end || units < 1) {
      return invalid_argument(
          fmt::format("layers: \"{}\" is no number of units, as in 64,32", part));
    }
    layers.push_back(units);
  }
  return layers;
}

Result<std::vector<double>> quantiles_of(const std::string& text) {
  std::vector<double> quantiles;
  for (const std::string& part : parts_of(text)) {
    const std::optional<double> share = number_of(part);
    if (!share) return invalid_argument(fmt::format("quantiles: \"{}\" is no number", part));
    quantiles.push_back(*share);
  }
  return quantiles;
}

Status check_loss(const FitFlags& flags, const FitTask& task) {
  if (task.classes && (flags.loss != "squared" || !task.quantiles.empty())) {
    return invalid_argument(
        fmt::format("loss and quantiles are of numbers, and label \"{}\" is learned as classes: "
                    "give --learn numbers",
                    flags.label));
  }
  if ((flags.loss == "quantile") == task.quantiles.empty()) {
    return invalid_argument("loss quantile and quantiles, such as 0.1,0.5,0.9, need each other");
  }
  return {};
}

/// A label or a weight must be there in each row: what is said of the first that is not.
Status check_target(const CsvTable& table, const std::string& name) {
  CFT_ASSIGN(const size_t place, table.find(name));
  const CsvTable::Cells& cells = table.cells[place];
  const auto gaps = std::ranges::count(cells, "");
  if (gaps == 0) return {};
  return invalid_argument(fmt::format(
      "{}: column \"{}\" is empty in {} of {} rows, first in row {} below the header; fill these "
      "cells, or take the rows out",
      table.path, name, gaps, cells.size(), std::ranges::find(cells, "") - cells.begin() + 1));
}

}  // namespace

Status check_numbers(const CsvTable& table, const std::string& label) {
  CFT_ASSIGN(const size_t place, table.find(label));
  const CsvTable::Cells& cells = table.cells[place];
  const auto is_odd = [](const std::string& cell) { return !cell.empty() && !number_of(cell); };
  const auto odd = std::ranges::find_if(cells, is_odd);
  if (odd == cells.end()) return {};
  return invalid_argument(fmt::format(
      "{}: column \"{}\" has \"{}\" in row {} below the header, which is no number, as which it is "
      "learned; correct it, or give --learn classes",
      table.path, label, *odd, odd - cells.begin() + 1));
}

namespace {

/// Classes are learned from two on.
Status check_classes(const CsvTable& table, const std::string& label) {
  CFT_ASSIGN(const size_t place, table.find(label));
  const CsvTable::Cells& cells = table.cells[place];
  if (std::ranges::adjacent_find(cells, std::ranges::not_equal_to()) != cells.end()) return {};
  return invalid_argument(fmt::format(
      "{}: column \"{}\" is \"{}\" in each row, so there is nothing to learn; name another column "
      "by --label, or add rows of another class",
      table.path, label, cells.front()));
}

}  // namespace

Result<FitTask> fit_task(const CsvTable& table, const FitFlags& flags) {
  CFT_ASSIGN(const size_t label, table.find(flags.label));
  CFT_ASSIGN(std::vector<std::string> names, features_of(table, flags));
  CFT_ASSIGN(const std::vector<std::string> categorical, named_columns(table, flags.categorical));
  FitTask task;
  task.features = names.size();
  CFT_ASSIGN(task.layers, layers_of(flags.layers));
  CFT_ASSIGN(task.quantiles, quantiles_of(flags.quantiles));
  task.classes = flags.learn.empty() ? are_classes(table.cells[label]) : flags.learn == "classes";
  CFT_TRY(check_loss(flags, task));
  if (flags.patience > 0 && flags.validation == 0) {
    return invalid_argument(
        "patience needs rows to test on: give --validation a share, such as 0.1");
  }
  if (table.rows() == 0) {
    return invalid_argument(table.path + ": there are no rows below the header");
  }
  CFT_TRY(check_target(table, flags.label));
  if (!flags.weight.empty()) CFT_TRY(check_target(table, flags.weight));
  CFT_TRY(task.classes ? check_classes(table, flags.label) : check_numbers(table, flags.label));
  names.push_back(flags.label);
  if (!flags.weight.empty()) names.push_back(flags.weight);
  for (const std::string& name : names) {
    CFT_ASSIGN(const size_t place, table.find(name));
    const bool is_category = contains(categorical, name);
    const bool is_class = task.classes && name == flags.label;
    const CsvTable::Cells& cells = table.cells[place];
    ColumnType type = is_category || is_class ? class_type(cells) : found_type(cells);
    if (is_class && type != ColumnType::kF64) type = ColumnType::kString;  // also dates
    task.columns.push_back({name, type});
    task.kinds.emplace_back(is_category ? "CATEGORY" : kind_of(type));
  }
  task.kinds[task.features] = task.classes ? "CLASS" : "NUMBER";
  if (!flags.weight.empty()) task.kinds.back() = "WEIGHT";
  return task;
}

}  // namespace cafetiere
