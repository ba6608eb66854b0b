// SPDX-License-Identifier: Apache-2.0
// The replicas' part of the C interface.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/capi/boundary.h"
#include "core/capi/handles.h"
#include "core/capi/options.h"
#include "core/model/weights.h"
#include "core/sync/shuffle.h"
#include "core/train/rounds.h"

struct cft_replica {
  cafetiere::LogRelay log;  // first: the replica speaks through it
  std::unique_ptr<cafetiere::Replica> replica;
};

struct cft_rounds {
  cafetiere::LogRelay log;
  std::unique_ptr<cafetiere::Rounds> rounds;
};

namespace cafetiere::capi {
namespace {

Result<ReplicaOptions> read_options(Options o) {
  ReplicaOptions options;
  options.shards = int(o.number("shards", 1, 1, 1 << 20));
  options.shard = int(o.number("shard", 0, 0, options.shards - 1));
  options.threads = int(o.number("threads", 1, 1, 1024));
  options.prefetch_threads = int(o.number("prefetch_threads", 1, 1, 1024));
  options.seed = uint64_t(o.number("seed", 1, 0, INT64_MAX));
  options.max_iter = o.number("max_iter", 0, 0, INT32_MAX);
  options.inputs = take_inputs(o);
  CFT_ASSIGN(TrainingText training, take_training(o));
  options.solver = std::move(training.solver);
  options.net = std::move(training.net);
  options.has_net = training.has_net;
  return options;
}

Result<std::vector<std::span<const float>>> arrays_of(const float* const* arrays, int32_t count,
                                                      uint64_t floats) {
  if (count < 0 || (count > 0 && !arrays)) {
    return invalid_argument(fmt::format("there are no {} arrays", count));
  }
  std::vector<std::span<const float>> spans;
  for (int32_t i = 0; i < count; ++i) {
    if (!arrays[i] && floats > 0) return invalid_argument(fmt::format("array {} is NULL", i));
    spans.emplace_back(arrays[i], size_t(floats));
  }
  return spans;
}

std::string bytes_of(const std::vector<float>& floats) {
  return {reinterpret_cast<const char*>(floats.data()), floats.size() * sizeof(float)};
}

/// Most significant byte first, so that bytes compare as numbers do.
std::byte* put_big_endian(std::byte* to, uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) *to++ = std::byte(value >> shift);
  return to;
}

nlohmann::json to_json(const RoundReport& report) {
  return {{"losses", report.losses},
          {"rows", report.rows},
          {"epoch", report.epoch},
          {"lr", report.rate},
          {"compute_seconds", report.compute_seconds},
          {"wait_seconds", report.wait_seconds}};
}

nlohmann::json to_json(const ShardScores& result) {
  nlohmann::json outputs = nlohmann::json::array();
  for (const TestOutput& out : result.scores.outputs) outputs.push_back({out.blob, out.mean});
  return {{"net", result.net}, {"rows", result.rows}, {"outputs", outputs}};
}

nlohmann::json to_json(const Rounds& rounds) {
  const caffe::SolverParameter& p = rounds.solver();
  nlohmann::json stopping = stopping_json(rounds.stopping());
  if (rounds.stopping()) stopping["due"] = rounds.stopping()->is_due(rounds.iter());
  return {{"iter", rounds.iter()},
          {"length", rounds.length()},
          {"floats", rounds.shared().size()},
          {"keeps_history", rounds.rule() == HistoryRule::kKept && rounds.kinds() > 0},
          {"mode", p.sync().mode()},
          {"period", p.sync().period()},
          {"seed", rounds.seed()},
          {"max_iter", p.max_iter()},
          {"test_interval", p.test_interval()},
          {"test_initialization", p.test_initialization()},
          {"snapshot", p.snapshot()},
          {"average_loss", p.average_loss()},
          {"display", p.display()},
          {"posterior", rounds.posterior_due()},
          {"early_stopping", stopping}};
}

}  // namespace
}  // namespace cafetiere::capi

using cafetiere::Status;
namespace capi = cafetiere::capi;

int cft_rows_keys(const cft_rows* rows, int64_t seed, void* keys) {
  CFT_NOT_NULL(rows);
  return capi::guarded([&]() -> Status {
    if (!keys && rows->table.rows() > 0) return cafetiere::invalid_argument("keys is NULL");
    auto* to = static_cast<std::byte*>(keys);
    for (int64_t row = 0; row < rows->table.rows(); ++row) {
      const cafetiere::RowKey key = cafetiere::row_key(rows->table, row, uint64_t(seed));
      to = capi::put_big_endian(to, key.order.high);
      to = capi::put_big_endian(to, key.order.low);
      to = capi::put_big_endian(to, key.content);
      const uint64_t size = rows->table.row(row).size();
      std::memcpy(to, &size, sizeof size);
      to += sizeof size;
    }
    return {};
  });
}

int cft_tree_sum(const float* const* arrays, int32_t count, uint64_t floats, float* out) {
  return capi::guarded([&]() -> Status {
    if (!out && floats > 0) return cafetiere::invalid_argument("out is NULL");
    CFT_ASSIGN(const auto terms, capi::arrays_of(arrays, count, floats));
    CFT_ASSIGN(const auto sum, cafetiere::tree_sum_of(terms));
    std::copy(sum.begin(), sum.end(), out);
    return {};
  });
}

int cft_replica_create(const char* options, cft_replica** out) {
  CFT_NOT_NULL(out);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(capi::Options parsed, capi::Options::parse(options));
    CFT_ASSIGN(auto read, capi::read_options(std::move(parsed)));
    auto handle = std::make_unique<cft_replica>();
    read.log = handle->log.logger();
    CFT_ASSIGN(handle->replica, cafetiere::Replica::create(std::move(read)));
    *out = handle.release();
    return {};
  });
}

int cft_replica_rows(cft_replica* r, cft_rows* rows, int64_t total_rows) {
  CFT_NOT_NULL(r, rows);
  return capi::guarded([&] { return r->replica->feed(std::move(rows->table), total_rows); });
}

int cft_replica_validation(cft_replica* r, cft_rows* rows) {
  CFT_NOT_NULL(r, rows);
  return capi::guarded([&] { return r->replica->hold_out(std::move(rows->table)); });
}

int cft_replica_restore(cft_replica* r, const void* state, uint64_t bytes) {
  CFT_NOT_NULL(r);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const auto given, capi::given_bytes(state, bytes, "state"));
    CFT_ASSIGN(auto parsed, cafetiere::parse_solver_state(given));
    return r->replica->restore(cafetiere::source_of(std::move(parsed)));
  });
}

int cft_replica_round(cft_replica* r, int64_t iter, int64_t steps, float* shared, uint64_t floats,
                      char** report) {
  CFT_NOT_NULL(r, shared, report);
  return capi::guarded([&]() -> Status {
    if (std::clamp<int64_t>(iter, 0, INT32_MAX) != iter ||
        std::clamp<int64_t>(steps, 1, INT32_MAX - iter) != steps) {
      return cafetiere::invalid_argument(fmt::format("no {} iterations begin at {}", steps, iter));
    }
    CFT_ASSIGN(const auto done, r->replica->round(int(iter), int(steps), {shared, size_t(floats)}));
    return capi::give_json(capi::to_json(done), report);
  });
}

int cft_replica_test(cft_replica* r, const float* shared, uint64_t floats, char** scores) {
  CFT_NOT_NULL(r, shared, scores);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const auto result, r->replica->test({shared, size_t(floats)}));
    return capi::give_json(capi::to_json(result), scores);
  });
}

int cft_replica_posterior(cft_replica* r, const float* begun, uint64_t floats, void** sums,
                          uint64_t* bytes) {
  CFT_NOT_NULL(r, begun, sums, bytes);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const auto sum, r->replica->sum_posterior({begun, size_t(floats)}));
    return capi::give_bytes(capi::bytes_of(sum), sums, bytes);
  });
}

int cft_replica_history(cft_replica* r, void** out, uint64_t* bytes) {
  CFT_NOT_NULL(r, out);
  return capi::guarded([&]() -> Status {
    std::string all;
    for (const std::vector<float>& kind : r->replica->history()) {
      all += capi::bytes_of(kind);
    }
    return capi::give_bytes(all, out, bytes);
  });
}

int cft_replica_log(cft_replica* r, cft_log log, void* context) {
  CFT_NOT_NULL(r);
  return capi::guarded([&] { r->log.listen(capi::sink_of(log, context)); });
}

int cft_replica_step(const cft_replica* r, int64_t* step) {
  CFT_NOT_NULL(r, step);
  return capi::guarded([&]() -> Status {
    *step = r->replica->step();
    return {};
  });
}

void cft_replica_cancel(cft_replica* r) {
  if (r) r->replica->cancel();
}
void cft_replica_destroy(cft_replica* r) { delete r; }

int cft_rounds_create(const char* options, cft_rounds** out) {
  CFT_NOT_NULL(out);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(capi::Options parsed, capi::Options::parse(options));
    CFT_ASSIGN(auto read, capi::read_options(std::move(parsed)));
    auto handle = std::make_unique<cft_rounds>();
    read.log = handle->log.logger();
    CFT_ASSIGN(handle->rounds, cafetiere::Rounds::create(std::move(read)));
    *out = handle.release();
    return {};
  });
}

int cft_rounds_restore(cft_rounds* r, const void* model, uint64_t model_bytes, const void* state,
                       uint64_t state_bytes) {
  CFT_NOT_NULL(r);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const auto given, capi::given_bytes(model, model_bytes, "model"));
    CFT_ASSIGN(auto weights, cafetiere::parse_weights(given));
    if (!state) return r->rounds->restore(std::move(weights));
    CFT_ASSIGN(const auto history, capi::given_bytes(state, state_bytes, "state"));
    CFT_ASSIGN(auto parsed, cafetiere::parse_solver_state(history));
    return r->rounds->restore(std::move(weights), cafetiere::source_of(std::move(parsed)));
  });
}

int cft_rounds_describe(const cft_rounds* r, char** out) {
  CFT_NOT_NULL(r, out);
  return capi::guarded([&] { return capi::give_json(capi::to_json(*r->rounds), out); });
}

int cft_rounds_shared(const cft_rounds* r, float* out, uint64_t floats) {
  CFT_NOT_NULL(r, out);
  return capi::guarded([&]() -> Status {
    const std::span<const float> shared = r->rounds->shared();
    if (floats != shared.size()) return cafetiere::invalid_argument("not the number of floats");
    std::copy(shared.begin(), shared.end(), out);
    return {};
  });
}

int cft_rounds_end(cft_rounds* r, const float* const* sums, int32_t count, uint64_t floats) {
  CFT_NOT_NULL(r);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const auto terms, capi::arrays_of(sums, count, floats));
    return r->rounds->end_round(terms);
  });
}

int cft_rounds_test(cft_rounds* r, double value) {
  CFT_NOT_NULL(r);
  return capi::guarded([&] { return r->rounds->test(value); });
}

int cft_rounds_begin_posterior(cft_rounds* r, void** begun, uint64_t* bytes) {
  CFT_NOT_NULL(r, begun, bytes);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const std::vector<float> floats, r->rounds->begin_posterior());
    return capi::give_bytes(capi::bytes_of(floats), begun, bytes);
  });
}

int cft_rounds_end_posterior(cft_rounds* r, const float* const* sums, int32_t count,
                             uint64_t floats) {
  CFT_NOT_NULL(r);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const auto terms, capi::arrays_of(sums, count, floats));
    return r->rounds->end_posterior(terms);
  });
}

int cft_rounds_model(const cft_rounds* r, void** out, uint64_t* bytes) {
  CFT_NOT_NULL(r, out);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const std::string model, r->rounds->model());
    return capi::give_bytes(model, out, bytes);
  });
}

int cft_rounds_state(const cft_rounds* r, const float* const* histories, int32_t count,
                     uint64_t floats, void** out, uint64_t* bytes) {
  CFT_NOT_NULL(r, out);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const auto arrays, capi::arrays_of(histories, count, floats));
    CFT_ASSIGN(const std::string state, r->rounds->state(arrays));
    return capi::give_bytes(state, out, bytes);
  });
}

int cft_rounds_log(cft_rounds* r, cft_log log, void* context) {
  CFT_NOT_NULL(r);
  return capi::guarded([&] { r->log.listen(capi::sink_of(log, context)); });
}

void cft_rounds_destroy(cft_rounds* r) { delete r; }
