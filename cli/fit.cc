// SPDX-License-Identifier: Apache-2.0
// fit: learns one column of a CSV from the others. What it writes has the bytes that
// `python -m cafetiere fit` writes.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/c_handles.h"
#include "cli/command.h"
#include "cli/fit_output.h"
#include "cli/fit_rows.h"
#include "cli/fit_summary.h"
#include "cli/fit_task.h"
#include "cli/machine.h"
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
  const std::string table = told.dump(1, ' ', true);
  return write_files(std::vector<NewFile>{{(folder / "net.prototxt").string(), trained.net},
                                          {(folder / "model.caffemodel").string(), trained.weights},
                                          {(folder / "table.json").string(), table}});
}

/// A table to tell how well it is predicted.
struct Asked {
  CsvTable table;
  EncodedRows rows;
};

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
Result<Asked> asked_of(const FitFlags& flags, const std::vector<Column>& features, bool classes) {
  CFT_ASSIGN(CsvTable table, read_csv_table(flags.test));
  CFT_ASSIGN(EncodedRows rows, encode_rows(table, features));
  CFT_TRY(table.find(flags.label).status());
  if (!classes) CFT_TRY(check_numbers(table, flags.label));
  return Asked{std::move(table), std::move(rows)};
}

/// Gives the cells of a label, which is a column, one form each, if they are numbers that name classes and
/// are read as texts.
void name_classes(const FitTask& task, const std::string& label, CsvTable* table) {
  CsvTable::Cells& cells = table->cells[*table->find(label)];
  const bool are_texts = task.columns[task.features].type == ColumnType::kString;
  if (!task.classes || !are_texts || found_type(cells) != ColumnType::kF64) return;
  for (std::string& cell : cells) cell = class_text(cell);
}

/// Prints at once how well tables are predicted, the one learned from first: what is said of each.
Result<nlohmann::ordered_json> tell_scores(const TableScorer& scorer,
                                           const std::vector<Asked>& asked,
                                           const std::string& label,
                                           const std::vector<size_t>& held_out) {
  nlohmann::ordered_json told;
  const auto tell = [&](const std::string& of, const std::string& sentence) {
    fmt::print("{}: {}\n", of, sentence);
    told[of] = sentence;
  };
  for (const Asked& one : asked) {
    CFT_ASSIGN(const ScoredTable scored, ScoredTable::of(scorer, one.table, one.rows, label));
    if (told.empty() && !held_out.empty()) {
      tell(fmt::format("{} rows held back", held_out.size()), scored.some(held_out));
    }
    tell(one.table.path, scored.all());
  }
  return told;
}

Status fit(FitFlags flags) {
  CFT_ASSIGN(flags.out, output_folder(flags.table, flags.out));
  CFT_ASSIGN(CsvTable table, read_csv_table(flags.table));
  CFT_ASSIGN(FitTask task, fit_task(table, flags));
  name_classes(task, flags.label, &table);
  CFT_ASSIGN(SplitRows rows, split_rows(table, task, flags));
  task.patience = patience_of(flags, rows);
  const std::vector<size_t> held_out = rows.held_out_places;
  const std::vector<Column> features(task.columns.begin(),
                                     task.columns.begin() + long(task.features));
  std::vector<Asked> asked;
  if (!flags.test.empty()) {
    CFT_ASSIGN(Asked test, asked_of(flags, features, task.classes));
    asked.push_back(std::move(test));
  }
  std::error_code failed;
  fs::create_directories(flags.out, failed);
  if (failed) {
    return io_error(fmt::format("cannot make {}: {}; name a folder for the model by --out",
                                flags.out, failed.message()));
  }
  fmt::print("{}{}", table_line(table, task, flags), text_lines(table, task));
  std::fflush(stdout);  // the training may be long
  CFT_ASSIGN(const TrainedTable trained, train_table(task, flags, std::move(rows)));
  CFT_TRY(save(task, flags, trained));
  CFT_ASSIGN(const std::string lines,
             training_lines(trained, task, flags, int64_t(held_out.size()), int64_t(table.rows())));
  fmt::print("{}", lines);
  CFT_ASSIGN(SavedTable model, read_saved_table(flags.out));
  model.columns = features;  // the net's may stand in another order
  CFT_ASSIGN(const TableScorer scorer, TableScorer::open(std::move(model), flags.threads));
  CFT_ASSIGN(EncodedRows learned, encode_rows(table, features));
  asked.insert(asked.begin(), Asked{std::move(table), std::move(learned)});
  CFT_ASSIGN(const nlohmann::ordered_json told, tell_scores(scorer, asked, flags.label, held_out));
  CFT_TRY(write_report(flags, trained, told));
  fmt::print("{}", folder_lines(flags.out));
  return {};
}

void add_training(CLI::App& app, FitFlags* flags) {
  app.add_option("--epochs", flags->epochs, "passes over the table (default: 50)")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--batch", flags->batch, "rows per step (default: 256)")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--lr", flags->lr, "learning rate at the beginning (default: 0.003)")
      ->check(CLI::Range(0.0, 1e6));
  app.add_option("--seed", flags->seed, "seed of everything random (default: 1)")
      ->check(CLI::Range(int64_t{0}, INT64_MAX));
  app.add_option("--threads", flags->threads, "threads to compute with (default: all cores)")
      ->check(CLI::Range(1, 1024));
  app.add_option(
         "--validation", flags->validation,
         "share of the rows to hold out and test on once per epoch (default: 0.1 for tables "
         "of 100 rows or more); 0: none")
      ->check(CLI::Range(0.0, 0.9));
  app.add_option(
         "--patience", flags->patience,
         "number of consecutive epochs without improvement after which training ends, with the "
         "weights of the best epoch (default: 10 for tables of 1,500 rows or more); 0: train all "
         "epochs")
      ->check(CLI::Range(0, 1 << 30));
  app.add_option("--tol", flags->tol,
                 "by how much the loss must fall to count as an improvement (default: 0)")
      ->check(CLI::Range(0.0, 1e6));
}

void add_loss(CLI::App& app, FitFlags* flags) {
  app.add_option("--weight", flags->weight, "the column with the weight of each row in the loss");
  app.add_option("--class-weights", flags->class_weights,
                 "\"balanced\", or pairs such as \"spam=5, ham=1\"");
  app.add_option("--loss", flags->loss,
                 "for numbers: squared, huber or quantile (default: squared)")
      ->check(CLI::IsMember({"squared", "huber", "quantile"}));
  app.add_option(
      "--huber-delta", flags->huber_delta,
      "errors beyond this many standard deviations of the label are linear in huber (default: 1)");
  app.add_option("--quantiles", flags->quantiles,
                 "the quantiles to learn, such as 0.1,0.5,0.9, with --loss quantile");
}

}  // namespace

Action add_fit(CLI::App& app) {
  const auto flags = std::make_shared<FitFlags>();
  flags->threads = usable_cores();
  app.add_option("table", flags->table, "a CSV whose first line names the columns")->required();
  app.add_option("--label", flags->label, "the column to learn")->required();
  app.add_option("--out", flags->out,
                 "folder for the model and report.html (default: TABLE.model beside the table)");
  app.add_option("--test", flags->test, "a CSV with the same columns to test on");
  app.add_option("--features", flags->features,
                 "A,B,..: columns to learn from (default: all others)");
  app.add_option("--drop", flags->drop, "A,B,..: columns not to learn from");
  app.add_option("--categorical", flags->categorical,
                 "A,B,..: columns of numbers that are categories");
  app.add_option("--learn", flags->learn,
                 "what the label is: classes or numbers; by default, text and few different whole "
                 "numbers are classes")
      ->check(CLI::IsMember({"classes", "numbers"}));
  app.add_option("--layers", flags->layers, "units of each hidden layer (default: 64,32)");
  app.add_option("--net", flags->net,
                 "hidden layers instead of --layers: a prototxt, or an ONNX file with its weights");
  app.add_option("--members", flags->members,
                 "number of nets with these layers, whose scores are averaged (default: 1)")
      ->check(CLI::Range(1, 64));
  add_training(app, flags.get());
  add_loss(app, flags.get());
  return [flags] { return fit(*flags); };
}

}  // namespace cafetiere
