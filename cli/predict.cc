// SPDX-License-Identifier: Apache-2.0
// predict: what a model of a table says of the rows of a CSV, through the C interface.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "cafetiere/c_api.h"
#include "cli/command.h"
#include "cli/csv.h"
#include "cli/saved_table.h"
#include "cli/table_cells.h"

namespace cafetiere {
namespace {

constexpr int64_t kRowsAtOnce = 4096;

struct PredictFlags {
  std::string model, table;
  bool all = false;
  int threads = 1;
};

Status checked(int code) {
  return code == CFT_OK ? Status() : Status(ErrorCode(code), cft_last_error());
}

/// A number as the shortest text that is it, with a point.
std::string text_of(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_not_of("-0123456789") == text.npos) text += ".0";
  return text;
}

/// Predicts rows, and prints them with what is predicted.
class Predictor {
 public:
  explicit Predictor(SavedTable model) : model_(std::move(model)) {}

  Status open(int threads) {
    nlohmann::json columns = nlohmann::json::array();
    for (const Column& column : model_.columns) {
      columns.push_back({{"name", column.name}, {"type", column_type_name(column.type)}});
    }
    const nlohmann::json options{{"net", model_.net},
                                 {"schema", {{"columns", columns}, {"id", ""}}},
                                 {"outputs", {model_.output}},
                                 {"weights", model_.weights},
                                 {"threads", threads}};
    cft_predictor* made = nullptr;
    CFT_TRY(checked(cft_predictor_create(options.dump().c_str(), nullptr, 0, &made)));
    predictor_.reset(made);
    return checked(cft_predictor_row_size(made, 0, &width_));
  }

  /// Finds the model's columns in the table's head, and prints the head.
  Status begin(const std::vector<std::string>& head, bool all) {
    for (const Column& column : model_.columns) {
      const auto found = std::ranges::find(head, column.name);
      if (found == head.end()) {
        return not_found(fmt::format("the table has no column \"{}\"", column.name));
      }
      places_.push_back(size_t(found - head.begin()));
    }
    all_ = all || are_several();
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
      const Column& column = model_.columns[i];
      const Status status = append_cell(column.type, cells[places_[i]], &chunk_);
      if (!status.ok()) {
        return status.with_context(fmt::format("line {}, column \"{}\"", line, column.name));
      }
    }
    rows_.push_back(std::move(cells));
    return int64_t(rows_.size()) < kRowsAtOnce ? Status() : flush();
  }

  Status flush() {
    std::vector<float> values(rows_.size() * size_t(width_));
    float* const out = values.data();
    CFT_TRY(checked(cft_predictor_run(predictor_.get(), int64_t(rows_.size()), chunk_.data(),
                                      chunk_.size(), &out)));
    for (size_t i = 0; i < rows_.size(); ++i) {
      const std::span row(values.data() + i * size_t(width_), size_t(width_));
      for (std::string& cell : said(row)) rows_[i].push_back(std::move(cell));
      print(rows_[i]);
    }
    rows_.clear();
    chunk_.clear();
    return {};
  }

 private:
  struct Destroy {
    void operator()(cft_predictor* predictor) const { cft_predictor_destroy(predictor); }
  };

  /// Whether there are several labels, none of which is the prediction.
  bool are_several() const {
    if (!model_.classes.empty()) return false;
    return model_.output != "prediction" || (width_ > 1 && model_.quantiles.empty());
  }

  /// What the columns are called that are added.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    if (!are_several()) names.emplace_back("prediction");
    if (!model_.classes.empty()) names.emplace_back("probability");
    if (model_.quantiles.empty() && !all_) return names;
    for (int64_t i = 0; i < width_; ++i) {
      names.push_back(!model_.quantiles.empty()
                          ? fmt::format("quantile_{:g}", model_.quantiles[size_t(i)])
                      : !model_.classes.empty() ? "probability_" + model_.classes[size_t(i)]
                                                : fmt::format("{}_{}", model_.output, i));
    }
    return names;
  }

  /// The cells of these columns.
  std::vector<std::string> said(std::span<const float> values) const {
    std::vector<std::string> cells;
    const auto best = size_t(std::ranges::max_element(values) - values.begin());
    if (!model_.classes.empty()) {
      cells = {model_.classes[best], text_of(double(values[best]))};
    } else if (!are_several()) {
      cells = {text_of(double(values[middle()]))};
    }
    if (model_.quantiles.empty() && !all_) return cells;
    for (const float value : values) cells.push_back(text_of(double(value)));
    return cells;
  }

  /// The quantile that is nearest to a half.
  size_t middle() const {
    const auto& shares = model_.quantiles;
    const auto nearest =
        std::ranges::min_element(shares, {}, [](double q) { return std::abs(q - 0.5); });
    return size_t(nearest - shares.begin());
  }

  static void print(const std::vector<std::string>& cells) {
    for (size_t i = 0; i < cells.size(); ++i) {
      fmt::print("{}{}", i > 0 ? "," : "", csv_cell(cells[i]));
    }
    fmt::print("\n");
  }

  SavedTable model_;
  std::unique_ptr<cft_predictor, Destroy> predictor_;
  int64_t width_ = 1;  // numbers a row of what is predicted
  bool all_ = false;
  size_t width_of_head_ = 0;
  std::vector<size_t> places_;  // of the model's columns in the table
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::byte> chunk_;
};

Status predict(const PredictFlags& flags) {
  if (flags.table.ends_with(".parquet")) {
    return invalid_argument(fmt::format(
        "{} is no CSV; of Parquet files `python -m cafetiere predict` predicts rows", flags.table));
  }
  std::ifstream file(flags.table, std::ios::binary);
  if (!file) return not_found("File not found: " + flags.table);
  CFT_ASSIGN(SavedTable model, read_saved_table(flags.model));
  Predictor predictor(std::move(model));
  CFT_TRY(predictor.open(flags.threads));
  CsvReader csv(file);
  const auto rows = [&]() -> Status {
    std::vector<std::string> cells;
    CFT_ASSIGN(bool more, csv.next(&cells));
    if (!more) return invalid_argument("there is no line that names the columns");
    CFT_TRY(predictor.begin(cells, flags.all));
    while (true) {
      CFT_ASSIGN(more, csv.next(&cells));
      if (!more) return predictor.flush();
      CFT_TRY(predictor.add(cells, csv.line()));
    }
  };
  return rows().with_context(flags.table);
}

}  // namespace

Action add_predict(CLI::App& app) {
  const auto flags = std::make_shared<PredictFlags>();
  app.add_option("model", flags->model, "folder of a model of a table, of Spark or of Python")
      ->required();
  app.add_option("table", flags->table, "a CSV whose first line names the columns")->required();
  app.add_flag("--all", flags->all, "also print all numbers of a row, such as each class's chance");
  app.add_option("--threads", flags->threads, "threads that compute (default: 1)")
      ->check(CLI::Range(1, 1024));
  return [flags] { return predict(*flags); };
}

}  // namespace cafetiere
