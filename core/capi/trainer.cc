// SPDX-License-Identifier: Apache-2.0
// The trainer's part of the C interface.
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "core/base/sha256.h"
#include "core/base/thread_stacks.h"
#include "core/capi/boundary.h"
#include "core/capi/handles.h"
#include "core/capi/options.h"
#include "core/data/own_shard.h"
#include "core/device/isa.h"
#include "core/model/weights.h"
#include "core/observe/event_files.h"
#include "core/sync/modes.h"

namespace cafetiere::capi {
namespace {

std::string sha256_of(const std::string& bytes) {
  return sha256_hex(std::as_bytes(std::span(bytes)));
}

/// Forwards events to the caller. Of runs without display and of those that display over 10,000 steps,
/// progress at most five times a second.
class CallbackSink : public EventSink {
 public:
  explicit CallbackSink(cft_trainer* owner) : owner_(owner) {}

  void progress(const Progress& event) override {
    const auto now = std::chrono::steady_clock::now();
    const bool last = event.step >= event.max_iter;
    if (!last && !told_by_step() && now - sent_ < std::chrono::milliseconds(200)) return;
    sent_ = now;
    call(event);
  }
  void test(const TestResult& event) override { call(event); }
  void log(const LogMessage& event) override { call(event); }

 private:
  /// Whether the steps alone decide: the same run then tells the same losses.
  bool told_by_step() const {
    const caffe::SolverParameter& p = owner_->trainer->solver();
    return p.display() > 0 && p.max_iter() / p.display() <= 10'000;
  }
  void call(const Event& event) {
    const cft_callbacks& c = owner_->callbacks;
    if (c.event && c.event(c.context, to_json(event).c_str()) != 0) owner_->trainer->cancel();
  }
  cft_trainer* owner_;
  std::chrono::steady_clock::time_point sent_{};
};

/// Tells what users of events should know, too; before a run it waits for it.
void notice(cft_trainer* t, LogLevel level, std::string_view text) {
  constexpr size_t kMost = 100;
  if (t->running) {
    t->events.log({level, std::string(text)});
  } else if (t->notices.size() < kMost) {
    t->notices.push_back({level, std::string(text)});
  }
}

/// What the trainer and its sync mode say, all on the thread that calls in.
Logger logger_of(cft_trainer* t) {
  return Logger([t, log = t->log.logger()](LogLevel level, std::string_view text) {
    log.write(level, text);
    if (level >= LogLevel::kNotice) notice(t, level, text);
  });
}

/// While a run is under way: its notices are events, and what a group says that nobody listens to.
class Telling {
 public:
  Telling(cft_trainer* t, cft_group* group)
      : t_(t), group_(group && !group->log.is_heard() ? group : nullptr) {
    t->running = !group || group->group->rank() == 0;
    if (group_) group_->log.listen([log = logger_of(t)](auto... m) { log.write(m...); });
    if (!t->running) return;
    for (const LogMessage& message : std::exchange(t->notices, {})) t->events.log(message);
  }
  ~Telling() {
    t_->running = false;
    if (group_) group_->log.listen({});
  }
  Telling(const Telling&) = delete;
  Telling& operator=(const Telling&) = delete;

 private:
  cft_trainer* t_;
  cft_group* group_;
};

Result<TrainerOptions> read_options(const char* text, cft_trainer* t) {
  CFT_ASSIGN(Options o, Options::parse(text));
  TrainerOptions options;
  t->size = int(o.number("size", 1, 1, 1 << 20));
  t->rank = int(o.number("rank", 0, 0, t->size - 1));
  const int shards = int(o.number("shards", 0, 0, 1 << 20));
  t->shards = options.shards = shards > 0 ? shards : t->size;
  options.threads = int(o.number("threads", 1, 1, 1024));
  options.prefetch_threads = int(o.number("prefetch_threads", 1, 1, 1024));
  options.seed = uint64_t(o.number("seed", 1, 0, INT64_MAX));
  t->survivors = options.survivors = o.number("survivors", 0, 0, 1) != 0;
  options.max_iter = o.number("max_iter", 0, 0, INT32_MAX);
  options.keep_state = true;  // for cft_trainer_state()
  options.checkpoint_every = o.number("checkpoint_every", 0, 0, INT32_MAX);
  options.snapshots = o.number("snapshots", 0, 0, 1) != 0;
  t->checkpoint_folder = o.text("checkpoint_folder");
  if (!t->checkpoint_folder.empty())
    options.large_state = t->checkpoint_folder + "/end.solverstate.h5";
  t->inputs = take_inputs(o);
  const std::string events = o.text("events");
  CFT_ASSIGN(TrainingText training, take_training(o));
  options.solver = std::move(training.solver);
  options.net = std::move(training.net);
  options.has_net = training.has_net;
  options.log = logger_of(t);
  if (t->rank != 0) return options;
  if (!events.empty()) {
    CFT_ASSIGN(auto files, open_event_files(events, logger_of(t)));
    t->events.add(std::move(files));
  }
  t->events.add(std::make_unique<CallbackSink>(t));
  options.events = &t->events;
  options.on_checkpoint = [t](const Checkpoint& c) -> Status {
    const cft_callbacks& cb = t->callbacks;
    if (!cb.checkpoint) return {};
    CFT_ASSIGN(const bool in_files, give_checkpoint_files(t, c));
    if (in_files) return {};
    c.state.outline.learned_net = snapshot_weights(t->trainer->solver(), c, "");
    CFT_ASSIGN(const std::string model, c.model_bytes());
    CFT_ASSIGN(const std::string state, c.state_bytes());
    const std::string json =
        json_text({{"step", c.step()}, {"snapshot", c.is_snapshot}, {"sha256", sha256_of(model)}});
    return checkpoint_answer(cb.checkpoint(cb.context, json.c_str(), model.data(), model.size(),
                                           state.data(), state.size()));
  };
  return options;
}

/// Makes the sources of the training's rows and of those held out. With survivors they are this
/// rank's own and serve every group; else they are shuffled over the shards of all ranks.
Status open_rows(cft_trainer* t, Group* group, RowTable&& rows) {
  Trainer& trainer = *t->trainer;
  Group* const shuffling = t->survivors ? nullptr : group;
  const int shards = t->survivors ? 1 : t->shards;
  const auto& test_nets = trainer.test_graphs();
  CFT_TRY(
      check_bindings(t->inputs, trainer.graph(), test_nets.empty() ? nullptr : &test_nets.front()));
  CFT_ASSIGN(const FedTops fed, bind_rows(trainer.graph(), rows.schema(), t->inputs, false));
  CFT_ASSIGN(t->rows,
             make_rows_source(shuffling, std::move(rows), shards, fed, true, trainer.seed()));
  t->rows_given = 0;
  for (int s = 0; s < shards; ++s) t->rows_given += t->rows->sampler().total_rows_of(s);
  t->rows_tops = fed.names();
  if (!t->validation || test_nets.empty()) return {};
  CFT_ASSIGN(const FedTops held_out,
             bind_rows(test_nets.front(), t->validation->schema(), t->inputs, false));
  auto source = make_rows_source(shuffling, std::move(*t->validation), shards, held_out, false,
                                 trainer.seed());
  if (!source.ok()) return source.status().with_context("the rows to test on");
  t->held_out = *std::move(source);
  t->held_out_tops = held_out.names();
  return {};
}

Status run(cft_trainer* t, Group* group, RowTable* rows) {
  if (rows) CFT_TRY(open_rows(t, group, std::move(*rows)));
  if (!t->rows) return invalid_argument("the first run of a trainer needs rows");
  OwnShard own_rows(t->rows.get()), own_held_out(t->held_out.get());
  const auto source = [&](RowsSource* all, OwnShard* own) -> Source* {
    return t->survivors ? static_cast<Source*>(own) : all;
  };
  std::vector<TestFeed> tests;
  if (t->held_out) {
    tests.push_back({{{"", source(t->held_out.get(), &own_held_out), t->held_out_tops}},
                     t->held_out->sampler().batches_per_epoch(),
                     true});
  }
  const Status status =
      t->trainer->run(group, {{"", source(t->rows.get(), &own_rows), t->rows_tops}}, tests);
  if (!t->survivors) t->rows.reset(), t->held_out.reset();
  return status;
}

}  // namespace
}  // namespace cafetiere::capi

nlohmann::json cafetiere::capi::stopping_json(const std::optional<EarlyStopping>& stopping) {
  if (!stopping) return nullptr;
  nlohmann::json curve = nlohmann::json::array(), best;
  for (const auto& [iter, value] : stopping->curve()) {
    curve.push_back({iter, value});
  }
  if (stopping->best() >= 0) best = curve[size_t(stopping->best())];
  return {{"output", stopping->output()},
          {"best_step", best.is_null() ? nlohmann::json(0) : best[0]},
          {"best", best.is_null() ? nlohmann::json() : best[1]},
          {"interval", stopping->interval()},
          {"stopped", stopping->has_stopped()},
          {"curve", curve}};
}

using cafetiere::Status;
namespace capi = cafetiere::capi;

int cft_sync_modes(char** out) {
  CFT_NOT_NULL(out);
  return capi::guarded([&] {
    nlohmann::json modes = nlohmann::json::array();
    for (const cafetiere::SyncMode& mode : cafetiere::sync_modes()) {
      modes.push_back({{"name", mode.name},
                       {"text", mode.text},
                       {"promises", mode.promises},
                       {"survivors", mode.survivors},
                       {"rounds", mode.rounds},
                       {"rank_shards", mode.rank_shards}});
    }
    return capi::give_json(modes, out);
  });
}

int cft_trainer_create(const char* options, const cft_callbacks* callbacks, cft_trainer** out) {
  CFT_NOT_NULL(out);
  return capi::guarded([&]() -> Status {
    auto t = std::make_unique<cft_trainer>();
    CFT_ASSIGN(t->callbacks, capi::given_struct(callbacks, "cft_callbacks"));
    CFT_ASSIGN(cafetiere::TrainerOptions read, capi::read_options(options, t.get()));
    CFT_ASSIGN(t->trainer, cafetiere::Trainer::create(std::move(read)));
    *out = t.release();
    return {};
  });
}

int cft_trainer_restore(cft_trainer* t, const void* model, uint64_t model_bytes, const void* state,
                        uint64_t state_bytes) {
  CFT_NOT_NULL(t);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const auto bytes, capi::given_bytes(model, model_bytes, "model"));
    CFT_ASSIGN(caffe::NetParameter weights, cafetiere::parse_weights(bytes));
    if (!state) return t->trainer->restore(std::move(weights));
    CFT_ASSIGN(
        cafetiere::SolverState parsed,
        cafetiere::parse_solver_state({static_cast<const std::byte*>(state), size_t(state_bytes)}));
    return t->trainer->restore(std::move(weights), cafetiere::source_of(std::move(parsed)));
  });
}

int cft_trainer_validation(cft_trainer* t, cft_rows* rows) {
  CFT_NOT_NULL(t, rows);
  return capi::guarded([&]() -> Status {
    t->validation = std::move(rows->table);
    return {};
  });
}

int cft_trainer_run(cft_trainer* t, cft_group* group, cft_rows* rows) {
  CFT_NOT_NULL(t);
  return capi::guarded([&] {
    cafetiere::Group* g = group ? group->group.get() : nullptr;
    const capi::Telling telling(t, group);
    const Status status =
        cafetiere::guard([&] { return capi::run(t, g, rows ? &rows->table : nullptr); });
    if (!status.ok() && g) g->cancel();
    return status;
  });
}

int cft_trainer_log(cft_trainer* t, cft_log log, void* context) {
  CFT_NOT_NULL(t);
  return capi::guarded([&] { t->log.listen(capi::sink_of(log, context)); });
}

void cft_trainer_cancel(cft_trainer* t) {
  if (t) t->trainer->cancel();
}

int cft_trainer_checkpoint(cft_trainer* t) {
  CFT_NOT_NULL(t);
  return capi::guarded([&] { t->trainer->request_snapshot(); });
}

int cft_trainer_rows(cft_trainer* t, char** out) {
  CFT_NOT_NULL(t, out);
  return capi::guarded([&]() -> Status {
    nlohmann::json json = nlohmann::json::object();
    for (const auto& [epoch, rows] : t->trainer->rows_used()) json[std::to_string(epoch)] = rows;
    return capi::give_json(json, out);
  });
}

int cft_trainer_seconds(cft_trainer* t, char** out) {
  CFT_NOT_NULL(t, out);
  return capi::guarded([&]() -> Status {
    const cafetiere::TimeAccount::Seconds seconds = t->trainer->seconds();
    nlohmann::json json = nlohmann::json::object();
    for (size_t i = 0; i < seconds.size(); ++i) {
      json[cafetiere::name_of(cafetiere::Activity(i))] = seconds[i];
    }
    return capi::give_json(json, out);
  });
}

int cft_trainer_place(cft_trainer* t, char** out) {
  CFT_NOT_NULL(t, out);
  return capi::guarded([&]() -> Status {
    const cafetiere::Trainer::Place place = t->trainer->place();
    const nlohmann::json json = {
        {"step", place.iter}, {"doing", cafetiere::name_of(place.doing)}, {"thread", place.thread}};
    return capi::give_json(json, out);
  });
}

int cft_thread_stacks(int thread, char** out) {
  CFT_NOT_NULL(out);
  return capi::guarded([&]() -> Status {
    return capi::give_text(
        cafetiere::thread_stacks(thread > 0 ? std::vector{thread} : std::vector<int>()), out);
  });
}

int cft_trainer_result(cft_trainer* t, char** out) {
  CFT_NOT_NULL(t, out);
  return capi::guarded([&]() -> Status {
    const cafetiere::TrainingSummary& s = t->trainer->summary();
    const auto model = t->trainer->model_bytes();
    const nlohmann::json json{{"steps", s.steps},
                              {"epochs", s.rows_per_epoch.size()},
                              {"rows_given", t->rows_given},
                              {"rows_per_epoch", s.rows_per_epoch},
                              {"loss", s.loss},
                              {"seconds", s.seconds},
                              {"rows_per_s", s.rows_per_s},
                              {"sha256", model.ok() ? capi::sha256_of(*model) : ""},
                              {"files", t->trainer->needs_files()},
                              {"shards", t->shards},
                              {"ranks", t->size},
                              {"peak_bytes", s.peak_bytes},
                              {"early_stopping", capi::stopping_json(t->trainer->stopping())},
                              {"instruction_set", cafetiere::instruction_set()}};
    return capi::give_json(json, out);
  });
}

int cft_trainer_model(cft_trainer* t, void** out, uint64_t* bytes) {
  CFT_NOT_NULL(t, out);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const std::string model, t->trainer->model_bytes());
    return capi::give_bytes(model, out, bytes);
  });
}

int cft_trainer_state(cft_trainer* t, void** out, uint64_t* bytes) {
  CFT_NOT_NULL(t, out);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const std::string state, t->trainer->state_bytes());
    return capi::give_bytes(state, out, bytes);
  });
}

void cft_trainer_destroy(cft_trainer* t) { delete t; }
