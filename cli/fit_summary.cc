// SPDX-License-Identifier: Apache-2.0
#include "cli/fit_summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/c_handles.h"
#include "core/data/table_values.h"
#include "core/observe/grouped.h"

namespace cafetiere {
namespace {

namespace fs = std::filesystem;

/// "1 row", "2 rows".
std::string counted(int64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", grouped(double(count)), count == 1 ? one : many);
}

/// How many columns of each kind there are to learn from.
std::string kinds_text(const FitTask& task) {
  struct Kind {
    const char *name, *one, *many;
  };
  std::vector<std::string> parts;
  for (const Kind& kind : {Kind{"NUMBER", "number", "numbers"},
                           {"CATEGORY", "category", "categories"},
                           {"DATE", "date", "dates"},
                           {"TIMESTAMP", "time", "times"}}) {
    const auto end = task.kinds.begin() + long(task.features);
    const auto count = std::count(task.kinds.begin(), end, kind.name);
    if (count > 0) parts.push_back(counted(count, kind.one, kind.many));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

const CsvTable::Cells& cells_of(const CsvTable& table, const std::string& name) {
  return table.cells[size_t(std::ranges::find(table.names, name) - table.names.begin())];
}

/// Why the training ended where it did.
std::string ended_text(const TrainedTable& trained, const FitTask& task, const FitFlags& flags,
                       int64_t held_out, int64_t rows) {
  const nlohmann::json& stopping = trained.result.at("early_stopping");
  if (!stopping.is_null()) {
    const std::string why = stopping.at("stopped").get<bool>()
                                ? fmt::format("{} epochs were no better", task.patience)
                                : "all epochs were trained";
    return fmt::format(
        "best validation loss {:.6g}, after epoch {}; {}\n", stopping.at("best").get<double>(),
        stopping.at("best_step").get<int64_t>() / stopping.at("interval").get<int64_t>(), why);
  }
  if (held_out == 0 && !flags.validation) {
    return rows < kFewestToHoldBack
               ? "no rows are held back of fewer than 100; --validation 0.1 holds a tenth back\n"
               : "no rows were held back, as too few differ or have a class that others have\n";
  }
  if (held_out > 0 && !flags.patience) {
    return "no early stopping on a table of fewer than 1,500 rows; --patience 10 stops early\n";
  }
  return "";
}

/// A path as a shell takes it.
std::string shell_text(const std::string& path) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) ||
           std::string_view("@%+=:,./-_").find(char(c)) != std::string_view::npos;
  };
  if (std::ranges::all_of(path, is_plain)) return path;
  std::string quoted = "'";
  for (const char c : path) quoted += c == '\'' ? "'\"'\"'" : std::string(1, c);
  return quoted + "'";
}

}  // namespace

std::string table_line(const CsvTable& table, const FitTask& task, const FitFlags& flags) {
  std::string learned = "numbers";
  if (task.classes) {
    std::set<std::string> classes;
    for (const std::string& cell : cells_of(table, flags.label)) classes.insert(class_text(cell));
    learned = counted(int64_t(classes.size()), "class", "classes");
  }
  int64_t gaps = 0;
  for (size_t i = 0; i < task.features; ++i) {
    gaps += std::ranges::count(cells_of(table, task.columns[i].name), "");
  }
  return fmt::format("{}: {}; learning {} ({}) from {}: {}; {}\n", table.path,
                     counted(int64_t(table.rows()), "row", "rows"), flags.label, learned,
                     counted(int64_t(task.features), "column", "columns"), kinds_text(task),
                     counted(gaps, "empty cell", "empty cells"));
}

std::string text_lines(const CsvTable& table, const FitTask& task) {
  std::string lines;
  for (size_t i = 0; i < task.features; ++i) {
    const Column& column = task.columns[i];
    const CsvTable::Cells& cells = cells_of(table, column.name);
    if (column.type != ColumnType::kString || found_type(cells) != ColumnType::kString) continue;
    if (const std::optional<size_t> odd = odd_cell(cells)) {
      lines += fmt::format(
          "column \"{}\" is text, as row {} below the header has \"{}\"; empty cells are missing "
          "values\n",
          column.name, *odd + 1, cells[*odd]);
    }
  }
  return lines;
}

Result<std::string> training_lines(const TrainedTable& trained, const FitTask& task,
                                   const FitFlags& flags, int64_t held_out, int64_t rows) {
  const nlohmann::json asked{{"net", trained.net}, {"phase", "TRAIN"}};
  CFT_ASSIGN(const std::string told,
             handed_text([&](char** out) { return cft_describe(asked.dump().c_str(), out); }));
  const auto parameters = nlohmann::json::parse(told).at("parameters").get<double>();
  const std::string layers = task.layers.empty()
                                 ? "no hidden layers"
                                 : fmt::format("hidden layers {}", fmt::join(task.layers, ","));
  const std::string members =
      flags.members > 1 ? fmt::format("{} members of ", flags.members) : std::string();
  std::string lines = fmt::format("net: {}{}; {} parameters\n", members,
                                  flags.net.empty() ? layers : flags.net, grouped(parameters));
  if (trained.is_partial) {
    return lines +
           fmt::format("stopped by a signal after {} of {} steps; the model is the one so far\n",
                       trained.step, trained.max_iter);
  }
  const nlohmann::json& result = trained.result;
  lines += fmt::format("{} steps, {:.1f} s, loss {:.4f}\n", result.at("steps").get<int64_t>(),
                       result.at("seconds").get<double>(), result.at("loss").get<double>());
  return lines + ended_text(trained, task, flags, held_out, rows);
}

std::string folder_lines(const std::string& folder) {
  return fmt::format(
      "model: {}\nreport: {}\nto predict: cafetiere predict {} TABLE > predictions.csv\n", folder,
      (fs::path(folder) / "report.html").string(), shell_text(folder));
}

Result<ScoredTable> ScoredTable::of(const TableScorer& scorer, const CsvTable& table,
                                    const EncodedRows& rows, const std::string& label) {
  CFT_ASSIGN(const std::vector<float> scores, scorer.score(rows.count, rows.chunk));
  const std::vector<std::string>& classes = scorer.model().classes;
  const auto width = size_t(scorer.width());
  ScoredTable scored;
  scored.is_of_classes_ = !classes.empty();
  scored.labels_ = cells_of(table, label);
  scored.is_right_.resize(table.rows());
  scored.values_.resize(table.rows());
  scored.errors_.resize(table.rows());
  for (size_t r = 0; r < table.rows(); ++r) {
    std::string& cell = scored.labels_[r];
    if (cell.empty()) continue;
    scored.labelled_.push_back(r);
    const std::span row(scores.data() + r * width, width);
    const size_t best = scorer.best(row);
    if (scored.is_of_classes_) {
      cell = class_text(cell);
      scored.is_right_[r] = cell == class_text(classes[best]);
      continue;
    }
    const std::optional<double> value = number_of(cell);
    if (!value) {
      return invalid_argument(fmt::format("{}: column \"{}\", row {}: \"{}\" is no number",
                                          table.path, label, r, cell));
    }
    scored.values_[r] = *value;
    scored.errors_[r] = *value - double(row[best]);
  }
  return scored;
}

std::string ScoredTable::measured(std::span<const size_t> places) const {
  const auto count = double(places.size());
  if (is_of_classes_) {
    const auto right = std::ranges::count_if(places, [&](size_t r) { return is_right_[r]; });
    return fmt::format("accuracy {:.4f}", double(right) / count);
  }
  double squares = 0;
  for (const size_t r : places) squares += errors_[r] * errors_[r];
  return fmt::format("root mean squared error {:.6g}", std::sqrt(squares / count));
}

std::string ScoredTable::all() const {
  return labelled_.empty() ? "no row has a label" : measured(labelled_);
}

std::string ScoredTable::some(std::span<const size_t> places) const {
  const auto count = double(places.size());
  if (is_of_classes_) {
    std::map<std::string, int64_t> rows;
    int64_t most = 0;
    for (const size_t r : places) most = std::max(most, ++rows[labels_[r]]);
    return fmt::format("{} (always the commonest class: {:.4f})", measured(places),
                       double(most) / count);
  }
  double sum = 0, squares = 0;
  for (const size_t r : places) sum += values_[r];
  for (const size_t r : places) squares += (values_[r] - sum / count) * (values_[r] - sum / count);
  return fmt::format("{} (always the mean: {:.6g})", measured(places), std::sqrt(squares / count));
}

}  // namespace cafetiere
