// SPDX-License-Identifier: Apache-2.0
// A small problem, and a rank's worker that trains on it in one of the asynchronous modes.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/base/arena_block.h"
#include "core/sync/center_mode.h"
#include "tests/comm/children.h"

namespace cafetiere::test {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

// One block of an arena for each of three ranks, and a little more.
inline constexpr size_t kFloats = 3 * kArenaBlock + 100;

/// w is to become +1, -1, +1, ... : half the mean square of the distance. Each worker sees gradients
/// with noise of its own.
struct Problem {
  static float target(size_t i) { return i % 2 == 0 ? 1.f : -1.f; }

  static double loss(std::span<const float> w) {
    double sum = 0;
    for (size_t i = 0; i < w.size(); ++i) sum += std::pow(double(w[i] - target(i)), 2);
    return sum / 2 / double(w.size());
  }

  static Floats gradient(int worker, int iter, std::span<const float> w) {
    std::minstd_rand random(uint32_t(1 + worker * 1'000'003 + iter));
    Floats g(w.size());
    for (size_t i = 0; i < w.size(); ++i) {
      g[i] = w[i] - target(i) + float(random()) / float(std::minstd_rand::max()) - 0.5f;
    }
    return g;
  }
};

inline caffe::SolverParameter solver_of(const std::string& type) {
  caffe::SolverParameter solver;
  solver.set_type(type);
  const bool has_momentum = type != "AdaGrad" && type != "RMSProp";
  if (has_momentum) solver.set_momentum(type == "AdaDelta" ? 0.95f : 0.9f);
  if (type == "RMSProp") solver.set_rms_decay(0.98f);
  if (type == "Adam" || type == "AdamW") solver.set_momentum2(0.999f);
  solver.set_delta(type == "AdaDelta" ? 1e-3f : 1e-8f);
  return solver;
}

/// A learning rate that suits a solver.
inline float rate_of(const std::string& type) {
  if (type == "AdaDelta") return 1.f;
  if (type == "AdaGrad") return 0.1f;
  return type == "LAMB" ? 0.03f : 0.01f;
}

/// One rank's worker in a training of the Problem.
template <class Mode>
class CenterWorker {
 public:
  CenterWorker(Group* group, const caffe::SyncParameter& sync, const caffe::SolverParameter& solver,
               float rate, Logger log = {})
      : rank_(group ? group->rank() : 0), rate_(rate), weights_(kFloats, 0.f) {
    auto update = ArenaUpdate::make(solver, {{0, int64_t(kFloats)}}, int64_t(kFloats));
    SyncContext context{.group = group, .floats = kFloats, .pool = &pool_, .log = std::move(log)};
    if (group) context.shards = group->size();
    mode_ = std::make_unique<Mode>(sync, context, std::move(*update));
  }

  Status open() { return mode_->open(); }
  Mode& mode() { return *mode_; }
  const Floats& weights() const { return weights_; }
  int iter() const { return iter_; }

  /// Iterations up to where an exchange may be due.
  Status round(int max_iter) {
    const int end = std::min(max_iter, iter_ + mode_->round_length(iter_));
    mode_->begin_shard(rank_, weights_);
    Floats gradient;
    UpdateStep step;
    for (; iter_ < end; ++iter_) {
      gradient = Problem::gradient(rank_, iter_, weights_);
      step = {.iter = iter_, .rate = rate_};
      CFT_TRY(mode_->gradient(step, Problem::loss(weights_), gradient, weights_));
    }
    CFT_TRY(mode_->end_shard(rank_, weights_));
    return mode_->end_round(step, gradient, weights_);
  }

  /// To the end; `use` sees the state that it leaves.
  Status train(int max_iter, const StateUse& use = {}) {
    while (iter_ < max_iter) CFT_TRY(round(max_iter));
    CFT_TRY(mode_->consolidate(true, weights_));
    if (use) CFT_TRY(mode_->show_state(use));
    return mode_->gather_at_end({}).status();
  }

  /// Takes what all come to, and leaves.
  Status leave(Floats& weights) {
    CFT_TRY(mode_->consolidate(true, weights));
    return mode_->gather_at_end({}).status();
  }

  /// The center, while the worker goes on.
  Floats center() {
    Floats copy = weights_;
    const Status status = mode_->consolidate(false, copy);
    EXPECT_TRUE(status.ok()) << status.message();
    return copy;
  }

 private:
  const int rank_;
  const float rate_;
  ThreadPool pool_{1};
  int iter_ = 0;
  Floats weights_;
  std::unique_ptr<Mode> mode_;
};

/// Runs body(rank, worker) on a thread a rank; nobody leaves before all are done.
template <class Mode>
void with_center_workers(Transport transport, int size, const caffe::SyncParameter& sync,
                         const caffe::SolverParameter& solver, float rate,
                         const std::function<Status(int, CenterWorker<Mode>&)>& body) {
  auto groups = make_groups(transport, size);
  std::barrier done(size);
  expect_ok(on_ranks(size, [&](int rank) {
    CenterWorker<Mode> worker(groups[size_t(rank)].get(), sync, solver, rate);
    Status status = worker.open();
    if (status.ok()) status = body(rank, worker);
    done.arrive_and_wait();
    return status;
  }));
}

inline void expect_near(const Floats& have, const Doubles& want) {
  EXPECT_THAT(have, Pointwise(testing::Truly([](const auto& pair) {
                                return std::abs(double(std::get<0>(pair)) - std::get<1>(pair)) <
                                       2e-5;
                              }),
                              want));
}

/// What one or more workers of momentum SGD do, in double precision. The noise does not depend on
/// the weights, so the gradients are those of the Problem but for the precision.
class MomentumModel {
 public:
  MomentumModel(int workers, float rate, double momentum)
      : rate_(double(rate)), momentum_(momentum), workers_(size_t(workers)) {}

  void iterate(int worker, int times) {
    State& s = state(worker);
    for (int i = 0; i < times; ++i, ++s.iter) {
      const Floats noise = Problem::gradient(worker, s.iter, Floats(kFloats, 0.f));
      for (size_t k = 0; k < kFloats; ++k) {
        s.v[k] = momentum_ * s.v[k] + rate_ * (double(noise[k]) + s.w[k]);
        s.w[k] -= s.v[k];
      }
    }
  }

  const Doubles& weights(int worker) const { return workers_[size_t(worker)].w; }
  const Doubles& center() const { return center_; }

 protected:
  struct State {
    int iter = 0;
    Doubles w = Doubles(kFloats, 0.), v = Doubles(kFloats, 0.);
  };
  State& state(int worker) { return workers_[size_t(worker)]; }

  Doubles center_ = Doubles(kFloats, 0.);

 private:
  const double rate_, momentum_;
  std::vector<State> workers_;
};

}  // namespace cafetiere::test
