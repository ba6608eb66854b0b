// SPDX-License-Identifier: Apache-2.0
#include "cli/table_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <optional>
#include <variant>

#include "cli/c_handles.h"
#include "cli/signals.h"
#include "cli/table_scorer.h"
#include "core/model/file.h"
#include "core/observe/console.h"

namespace cafetiere {
namespace {

using nlohmann::json;

constexpr int64_t kMostTold = 1000;  // points of a curve, nearly
constexpr int kWide = 150;           // columns of a terminal

/// What a training tells: shown as it comes, and kept. What the rows held back say is shown in the line of
/// the progress, where the rate and the time left have room behind it: a line for each epoch would be many.
class Course {
 public:
  cft_callbacks callbacks() {
    return {.struct_size = sizeof(cft_callbacks),
            .context = this,
            .event = take,
            .checkpoint = nullptr};
  }
  const std::string& lines() const { return lines_; }

 private:
  static int take(void* context, const char* event) {
    auto& course = *static_cast<Course*>(context);
    course.lines_.append(event) += '\n';
    if (Result<Event> read = parse_event(event); read.ok()) course.show(*std::move(read));
    return 0;
  }
  void show(Event event) {
    if (const auto* test = std::get_if<TestResult>(&event)) {
      validation_.clear();
      for (const auto& [name, value] : test->outputs) {
        validation_.emplace_back("validation " + name, value);
      }
      return;
    }
    auto* progress = std::get_if<Progress>(&event);
    if (progress && !(style_.rewrite && style_.width < kWide)) {
      progress->outputs.insert(progress->outputs.end(), validation_.begin(), validation_.end());
    }
    console_.send(event);
  }

  const ConsoleStyle style_ = console_style(stderr);
  ConsoleSink console_{stderr, style_};
  NamedValues validation_;
  std::string lines_;
};

/// Hidden layers and their weights, if there are any.
struct GivenLayers {
  std::string net, weights;
};

/// Those of a file: a prototxt or ONNX.
Result<GivenLayers> read_layers(const std::string& path) {
  GivenLayers given;
  if (path.empty()) return given;
  CFT_ASSIGN(given.net, read_file(path));
  if (!path.ends_with(".onnx")) return given;
  const std::string onnx = std::exchange(given.net, "");
  char* net = nullptr;
  Result<std::string> weights = handed_bytes([&](void** out, uint64_t* size) {
    return cft_onnx_import(onnx.data(), onnx.size(), 1, &net, out, size);
  });
  if (!weights.ok()) return weights.status().with_context(path);
  given.weights = *std::move(weights);
  given.net = net;
  cft_free(net);
  return given;
}

/// The text of the net that encodes rows as these, and learns from them.
Result<std::string> net_of(const FitTask& task, const FitFlags& flags, const EncodedRows& rows,
                           const std::string& hidden, int64_t step_rows) {
  json columns = json::array();
  for (size_t i = 0; i < task.columns.size(); ++i) {
    columns.push_back({{"name", task.columns[i].name}, {"kind", task.kinds[i]}});
  }
  const json request{{"schema", schema_of(task.columns)}, {"columns", columns}};
  cft_table* made = nullptr;
  CFT_TRY(checked(cft_table_create(request.dump().c_str(), &made)));
  const Handle<cft_table> table(made);
  CFT_TRY(checked(cft_table_add(made, rows.count, rows.chunk.data(), rows.chunk.size())));
  json options{{"label", flags.label},    {"layers", task.layers},
               {"batch", step_rows},      {"step_rows", step_rows},
               {"net", hidden},           {"class_weights", flags.class_weights},
               {"members", flags.members}};
  if (!task.classes) {
    options["loss"] = flags.loss;
    options["delta"] = flags.huber_delta;
    options["quantiles"] = task.quantiles;
  }
  return handed_text([&](char** out) { return cft_table_net(made, options.dump().c_str(), out); });
}

/// The options of cft_trainer_create().
json trainer_options(const TrainedTable& trained, const FitTask& task, const FitFlags& flags,
                     std::optional<int64_t> test_interval) {
  std::string solver = fmt::format(
      "type: \"AdamW\" base_lr: {} lr_policy: \"cosine\" momentum: 0.9 weight_decay: 0.01 display: "
      "{}",
      flags.lr, std::max(int64_t{1}, trained.max_iter / kMostTold));
  if (test_interval) solver += fmt::format(" test_interval: {}", *test_interval);
  if (task.patience > 0) {
    solver +=
        fmt::format(" early_stopping {{ patience: {} tolerance: {} }}", task.patience, flags.tol);
  }
  return {{"solver", solver},
          {"net", trained.net},
          {"max_iter", trained.max_iter},
          {"seed", flags.seed},
          {"threads", flags.threads}};
}

Result<Handle<cft_rows>> native(const std::vector<Column>& columns, EncodedRows rows) {
  cft_rows* made = nullptr;
  CFT_TRY(checked(cft_rows_create(schema_of(columns).dump().c_str(), &made)));
  Handle<cft_rows> handle(made);
  CFT_TRY(checked(cft_rows_append(made, rows.count, rows.chunk.data(), rows.chunk.size())));
  return handle;
}

/// Runs a trainer to its end, or until a signal: whether it was one.
Result<bool> run(cft_trainer* trainer, cft_rows* rows, std::optional<SignalWatcher>* signals) {
  std::atomic<bool> stopped{false};
  (*signals)->start([&](SignalEffect effect) {
    if (effect == SignalEffect::kNone) return;
    stopped = true;
    cft_trainer_cancel(trainer);
  });
  const Status end = checked(cft_trainer_run(trainer, nullptr, rows));
  signals->reset();
  if (stopped && end.code() == ErrorCode::kCancelled) return true;
  CFT_TRY(end);
  return false;
}

/// What a trainer has come to.
Status take_results(cft_trainer* trainer, TrainedTable* trained) {
  CFT_ASSIGN(const std::string place,
             handed_text([&](char** out) { return cft_trainer_place(trainer, out); }));
  CFT_ASSIGN(const std::string result,
             handed_text([&](char** out) { return cft_trainer_result(trainer, out); }));
  trained->step = json::parse(place).at("step").get<int64_t>();
  trained->result = json::parse(result);
  CFT_ASSIGN(trained->weights, handed_bytes([&](void** out, uint64_t* size) {
               return cft_trainer_model(trainer, out, size);
             }));
  return {};
}

}  // namespace

Result<TrainedTable> train_table(const FitTask& task, const FitFlags& flags, SplitRows rows) {
  CFT_ASSIGN(const GivenLayers given, read_layers(flags.net));
  TrainedTable trained;
  const int64_t step_rows = std::min(flags.batch, rows.train.count);
  const int64_t epoch_steps = (rows.train.count + step_rows - 1) / step_rows;
  CFT_ASSIGN(trained.net, net_of(task, flags, rows.train, given.net, step_rows));
  trained.max_iter = flags.epochs * epoch_steps;

  // Before the trainer's threads, and gone before the trainer.
  std::optional<SignalWatcher> signals(std::in_place, stop_unless_ignored(SIGINT),
                                       stop_unless_ignored(SIGHUP));
  Course course;
  const cft_callbacks callbacks = course.callbacks();
  cft_trainer* made = nullptr;
  std::optional<int64_t> test_interval;
  if (rows.held_out.count > 0) test_interval = epoch_steps;
  const std::string options = trainer_options(trained, task, flags, test_interval).dump();
  CFT_TRY(checked(cft_trainer_create(options.c_str(), &callbacks, &made)));
  const Handle<cft_trainer> trainer(made);
  if (!given.weights.empty()) {
    CFT_TRY(
        checked(cft_trainer_restore(made, given.weights.data(), given.weights.size(), nullptr, 0)));
  }
  if (rows.held_out.count > 0) {
    CFT_ASSIGN(const auto held_out, native(task.columns, std::move(rows.held_out)));
    CFT_TRY(checked(cft_trainer_validation(made, held_out.get())));
  }
  CFT_ASSIGN(const auto own, native(task.columns, std::move(rows.train)));
  CFT_ASSIGN(trained.is_partial, run(made, own.get(), &signals));
  CFT_TRY(take_results(made, &trained));
  trained.events = course.lines();
  return trained;
}

}  // namespace cafetiere
