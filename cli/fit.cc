// SPDX-License-Identifier: Apache-2.0
// fit: learns one column of a CSV from the others. What it writes has the bytes that
// `python -m cafetiere fit` writes.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "cli/c_handles.h"
#include "cli/command.h"
#include "cli/fit_task.h"
#include "cli/machine.h"
#include "cli/table_cells.h"
#include "cli/table_scorer.h"
#include "cli/table_training.h"
#include "core/model/file.h"

namespace cafetiere {
namespace {

namespace fs = std::filesystem;

/// What `predict` reads.
Status save(const FitTask& task, const FitFlags& flags, const TrainedTable& trained) {
  nlohmann::ordered_json types = nlohmann::ordered_json::object();
  for (size_t i = 0; i < task.features; ++i) {
    types[task.columns[i].name] = column_type_name(task.columns[i].type);
  }
  const nlohmann::ordered_json told{
      {"types", types}, {"label", flags.label}, {"quantiles", task.quantiles}};
  const fs::path folder(flags.out);
  CFT_TRY(write_file((folder / "net.prototxt").string(), trained.net));
  CFT_TRY(write_file((folder / "model.caffemodel").string(), trained.weights));
  return write_file((folder / "table.json").string(), told.dump(1, ' ', true));
}

/// Whether a class of a table is the one predicted: 1.0 is 1.
bool same_class(const std::string& cell, const std::string& predicted) {
  if (cell == predicted) return true;
  const std::optional<double> a = number_of(cell), b = number_of(predicted);
  return a && b && *a == *b;
}

/// A table to tell how well it is predicted.
struct Asked {
  CsvTable table;
  EncodedRows rows;
};

/// A sentence on that, of the rows that have a label.
Result<std::string> tested(const TableScorer& scorer, const Asked& asked,
                           const std::string& label) {
  const auto& [table, rows] = asked;
  CFT_ASSIGN(const size_t place, table.find(label));
  CFT_ASSIGN(const std::vector<float> scores, scorer.score(rows.count, rows.chunk));
  const std::vector<std::string>& classes = scorer.model().classes;
  const auto width = size_t(scorer.width());
  int64_t count = 0, right = 0;
  double squares = 0;
  for (size_t r = 0; r < table.rows(); ++r) {
    const std::string& cell = table.cells[place][r];
    if (cell.empty()) continue;
    ++count;
    const std::span row(scores.data() + r * width, width);
    const size_t best = scorer.best(row);
    if (!classes.empty()) {
      right += same_class(cell, classes[best]);
      continue;
    }
    const std::optional<double> value = number_of(cell);
    if (!value) {
      return invalid_argument(fmt::format("{}: column \"{}\", row {}: \"{}\" is no number",
                                          table.path, label, r, cell));
    }
    const double error = *value - double(row[best]);
    squares += error * error;
  }
  if (count == 0) return std::string("no row has a label");
  if (!classes.empty()) return fmt::format("accuracy {:.4f}", double(right) / double(count));
  return fmt::format("root mean squared error {:.6g}", std::sqrt(squares / double(count)));
}

/// How the training went.
void tell(const TrainedTable& trained, int64_t patience) {
  const nlohmann::json& result = trained.result;
  if (trained.is_partial) {
    fmt::print("stopped by a signal after {} of {} steps; the model is the one so far\n",
               trained.step, trained.max_iter);
    return;
  }
  fmt::print("{} steps, {:.1f} s, loss {:.4f}\n", result.at("steps").get<int64_t>(),
             result.at("seconds").get<double>(), result.at("loss").get<double>());
  const nlohmann::json& stopping = result.at("early_stopping");
  if (stopping.is_null()) return;
  const std::string why = stopping.at("stopped").get<bool>()
                              ? fmt::format("{} epochs were no better", patience)
                              : "all epochs were trained";
  fmt::print("best validation loss {:.6g}, after epoch {}; {}\n", stopping.at("best").get<double>(),
             stopping.at("best_step").get<int64_t>() / stopping.at("interval").get<int64_t>(), why);
}

Status write_report(const FitFlags& flags, const TrainedTable& trained,
                    const nlohmann::ordered_json& tests) {
  nlohmann::json shown = trained.result;
  shown["title"] = fmt::format("{}: {}", fs::path(flags.table).filename().string(), flags.label);
  shown["tested"] = tests;
  const std::string result = shown.dump();
  CFT_ASSIGN(const std::string page, handed_text([&](char** out) {
               return cft_report(trained.events.c_str(), result.c_str(), out);
             }));
  return write_file((fs::path(flags.out) / "report.html").string(), page);
}

/// What is wrong with the table to test on is to be said before the training.
Result<Asked> asked_of(const FitFlags& flags, const std::vector<Column>& features) {
  CFT_ASSIGN(CsvTable table, read_csv_table(flags.test));
  CFT_ASSIGN(EncodedRows rows, encode_rows(table, features));
  CFT_TRY(table.find(flags.label).status());
  return Asked{std::move(table), std::move(rows)};
}

Status fit(const FitFlags& flags) {
  CFT_ASSIGN(CsvTable table, read_csv_table(flags.table));
  CFT_ASSIGN(const FitTask task, fit_task(table, flags));
  CFT_ASSIGN(SplitRows rows, split_rows(table, task.columns, flags.validation));
  const std::vector<Column> features(task.columns.begin(),
                                     task.columns.begin() + long(task.features));
  std::vector<Asked> asked;
  if (!flags.test.empty()) {
    CFT_ASSIGN(Asked test, asked_of(flags, features));
    asked.push_back(std::move(test));
  }
  std::error_code failed;
  fs::create_directories(flags.out, failed);
  if (failed) return io_error(fmt::format("cannot make {}: {}", flags.out, failed.message()));
  CFT_ASSIGN(const TrainedTable trained, train_table(task, flags, std::move(rows)));
  CFT_TRY(save(task, flags, trained));
  tell(trained, flags.patience);
  CFT_ASSIGN(SavedTable model, read_saved_table(flags.out));
  model.columns = features;  // the net's may stand in another order
  CFT_ASSIGN(const TableScorer scorer, TableScorer::open(std::move(model), flags.threads));
  CFT_ASSIGN(EncodedRows learned, encode_rows(table, features));
  asked.insert(asked.begin(), Asked{std::move(table), std::move(learned)});
  nlohmann::ordered_json tests;
  for (const Asked& one : asked) {
    CFT_ASSIGN(const std::string sentence, tested(scorer, one, flags.label));
    fmt::print("{}: {}\n", one.table.path, sentence);
    tests[one.table.path] = sentence;
  }
  return write_report(flags, trained, tests);
}

void add_training(CLI::App& app, FitFlags* flags) {
  app.add_option("--epochs", flags->epochs, "passes over the table (default: 50)")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--batch", flags->batch, "rows of a step (default: 256)")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--lr", flags->lr, "learning rate at the beginning (default: 0.003)")
      ->check(CLI::Range(0.0, 1e6));
  app.add_option("--seed", flags->seed, "seed of everything random (default: 1)")
      ->check(CLI::Range(int64_t{0}, INT64_MAX));
  app.add_option("--threads", flags->threads, "threads to compute with (default: all cores)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--validation", flags->validation,
                 "share of the rows to test on once an epoch; the others are trained on")
      ->check(CLI::Range(0.0, 0.9));
  app.add_option(
         "--patience", flags->patience,
         "epochs in a row that are no better, after which it ends with the best one's weights")
      ->check(CLI::Range(0, 1 << 30));
  app.add_option("--tol", flags->tol, "by how much an epoch must be better (default: 0)")
      ->check(CLI::Range(0.0, 1e6));
}

void add_loss(CLI::App& app, FitFlags* flags) {
  app.add_option("--weight", flags->weight, "the column with what each row counts in the loss");
  app.add_option("--class-weights", flags->class_weights,
                 "\"balanced\", or pairs such as \"spam=5, ham=1\"");
  app.add_option("--loss", flags->loss, "of numbers: squared, huber or quantile (default: squared)")
      ->check(CLI::IsMember({"squared", "huber", "quantile"}));
  app.add_option("--huber-delta", flags->huber_delta,
                 "where huber begins, in deviations (default: 1)");
  app.add_option("--quantiles", flags->quantiles, "of loss quantile, as 0.1,0.5,0.9");
}

}  // namespace

Action add_fit(CLI::App& app) {
  const auto flags = std::make_shared<FitFlags>();
  flags->threads = usable_cores();
  app.add_option("table", flags->table, "a CSV whose first line names the columns")->required();
  app.add_option("--label", flags->label, "the column to learn")->required();
  app.add_option("--out", flags->out, "folder for the model")->required();
  app.add_option("--test", flags->test, "a CSV of the same columns to test on");
  app.add_option("--features", flags->features,
                 "A,B,..: columns to learn from (default: all others)");
  app.add_option("--drop", flags->drop, "A,B,..: columns not to learn from");
  app.add_option("--categorical", flags->categorical, "A,B,..: of numbers that name something");
  app.add_option("--learn", flags->learn,
                 "what the label is: classes or numbers; by default texts and few whole numbers "
                 "are classes")
      ->check(CLI::IsMember({"classes", "numbers"}));
  app.add_option("--layers", flags->layers, "units of the hidden layers (default: 64,32)");
  app.add_option("--net", flags->net,
                 "hidden layers instead: a prototxt, or ONNX with its weights");
  add_training(app, flags.get());
  add_loss(app, flags.get());
  return [flags] { return fit(*flags); };
}

}  // namespace cafetiere
