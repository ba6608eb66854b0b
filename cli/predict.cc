// SPDX-License-Identifier: Apache-2.0
// predict: what a model of a table says of the rows of a CSV, through the C interface.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>

#include "cli/command.h"
#include "cli/csv.h"
#include "cli/csv_table.h"
#include "cli/table_cells.h"
#include "cli/table_scorer.h"

namespace cafetiere {
namespace {

constexpr int64_t kRowsAtOnce = 4096;

struct PredictFlags {
  std::string model, table;
  bool all = false;
  int threads = 1;
};

/// A number as the shortest text that is it, with a point.
std::string text_of(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_not_of("-0123456789") == text.npos) text += ".0";
  return text;
}

/// Predicts rows, and prints them with what is predicted.
class Predictor {
 public:
  explicit Predictor(TableScorer scorer) : scorer_(std::move(scorer)) {}

  /// Finds the model's columns in the table's head, and prints the head.
  Status begin(const std::vector<std::string>& head, bool all) {
    for (const Column& column : model().columns) {
      const auto found = std::ranges::find(head, column.name);
      if (found == head.end()) return not_found(no_column_text(column.name, head));
      places_.push_back(size_t(found - head.begin()));
    }
    each_ = all || scorer_.has_several_labels() || scorer_.has_several_numbers() ||
            !model().quantiles.empty();
    const std::vector<std::string> added = names();
    for (const std::string& name : added) {
      if (std::ranges::find(head, name) == head.end()) continue;
      return invalid_argument(
          fmt::format("the table has a column \"{}\" already; rename it", name));
    }
    width_of_head_ = head.size();
    std::vector<std::string> names = head;
    names.insert(names.end(), added.begin(), added.end());
    print(names);
    return {};
  }

  Status add(std::vector<std::string> cells, int64_t line) {
    if (cells.size() != width_of_head_) {
      return invalid_argument(fmt::format("line {}: {} cells, and the head has {}", line,
                                          cells.size(), width_of_head_));
    }
    for (size_t i = 0; i < places_.size(); ++i) {
      const Column& column = model().columns[i];
      const Status status = append_cell(column.type, cells[places_[i]], &chunk_);
      if (!status.ok()) {
        return status.with_context(fmt::format("line {}, column \"{}\"", line, column.name));
      }
    }
    rows_.push_back(std::move(cells));
    return int64_t(rows_.size()) < kRowsAtOnce ? Status() : flush();
  }

  Status flush() {
    CFT_ASSIGN(const std::vector<float> values, scorer_.score(int64_t(rows_.size()), chunk_));
    const auto width = size_t(scorer_.width());
    for (size_t i = 0; i < rows_.size(); ++i) {
      const std::span row(values.data() + i * width, width);
      for (std::string& cell : said(row)) rows_[i].push_back(std::move(cell));
      print(rows_[i]);
    }
    rows_.clear();
    chunk_.clear();
    return {};
  }

 private:
  const SavedTable& model() const { return scorer_.model(); }

  /// What the columns are called that are added.
  std::vector<std::string> names() const {
    const std::vector<std::string>& classes = model().classes;
    const std::vector<double>& quantiles = model().quantiles;
    std::vector<std::string> names;
    if (!scorer_.has_several_numbers()) names.emplace_back("prediction");
    if (!classes.empty()) names.emplace_back("probability");
    for (size_t i = 0; each_ && i < size_t(scorer_.width()); ++i) {
      names.push_back(!quantiles.empty() ? fmt::format("quantile_{:g}", quantiles[i])
                      : !classes.empty() ? "probability_" + classes[i]
                                         : fmt::format("{}_{}", model().output, i));
    }
    return names;
  }

  /// The cells of these columns.
  std::vector<std::string> said(std::span<const float> values) const {
    std::vector<std::string> cells;
    if (scorer_.has_several_labels()) {
      cells.push_back(fmt::format("{}", fmt::join(scorer_.held(values), " ")));
    } else if (!scorer_.has_several_numbers()) {
      const size_t best = scorer_.best(values);
      if (!model().classes.empty()) cells.push_back(model().classes[best]);
      cells.push_back(text_of(double(values[best])));
    }
    for (size_t i = 0; each_ && i < values.size(); ++i) {
      cells.push_back(text_of(double(values[i])));
    }
    return cells;
  }

  static void print(const std::vector<std::string>& cells) {
    for (size_t i = 0; i < cells.size(); ++i) {
      fmt::print("{}{}", i > 0 ? "," : "", csv_cell(cells[i]));
    }
    fmt::print("\n");
  }

  TableScorer scorer_;
  bool each_ = false;  // whether each number of a row is printed
  size_t width_of_head_ = 0;
  std::vector<size_t> places_;  // of the model's columns in the table
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::byte> chunk_;
};

Status predict(const PredictFlags& flags) {
  CFT_ASSIGN(std::ifstream file, open_csv(flags.table, "predict"));
  CFT_ASSIGN(SavedTable model, read_saved_table(flags.model));
  CFT_ASSIGN(TableScorer scorer, TableScorer::open(std::move(model), flags.threads));
  Predictor predictor(std::move(scorer));
  CsvReader csv(file);
  const auto rows = [&]() -> Status {
    CFT_ASSIGN(const std::vector<std::string> head, csv.head());
    CFT_TRY(predictor.begin(head, flags.all));
    std::vector<std::string> cells;
    while (true) {
      CFT_ASSIGN(const bool more, csv.next(&cells));
      if (!more) return predictor.flush();
      CFT_TRY(predictor.add(cells, csv.line()));
    }
  };
  return rows().with_context(flags.table);
}

}  // namespace

Action add_predict(CLI::App& app) {
  const auto flags = std::make_shared<PredictFlags>();
  app.add_option("model", flags->model, "folder of a table's model, written by fit or by Spark")
      ->required();
  app.add_option("table", flags->table, "a CSV whose first line names the columns")->required();
  app.add_flag("--all", flags->all,
               "also print all scores of a row, such as the probability of each class");
  app.add_option("--threads", flags->threads, "threads to compute with (default: 1)")
      ->check(CLI::Range(1, 1024));
  return [flags] { return predict(*flags); };
}

}  // namespace cafetiere
