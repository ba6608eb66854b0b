// SPDX-License-Identifier: Apache-2.0
// NetSolver: a solver for an eager net that the caller drives step by step, like Caffe's Solver in
// scripts. Trainer is for whole runs, several ranks and full speed.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/comm/shard_tree.h"
#include "core/solver/lr_policy.h"
#include "core/sync/allreduce.h"
#include "core/train/eager_net.h"
#include "core/train/history.h"
#include "core/train/snapshots.h"

namespace cafetiere {

class NetSolver {
 public:
  struct Options {
    SolverText solver;
    EagerNetOptions net;
    /// Called before an iteration's passes, before each pass, and between the passes and the
    /// update; an error ends the run.
    std::function<Status()> on_start, on_pass, on_gradients_ready;
  };
  static Result<std::unique_ptr<NetSolver>> create(Options options);

  EagerNet& net() { return *net_; }
  std::vector<std::unique_ptr<EagerNet>>& test_nets() { return test_nets_; }
  int iter() const { return iter_; }
  const caffe::SolverParameter& param() const { return options_.solver.param; }
  void set_base_lr(float rate);
  /// The learning rate of the last update.
  float rate() const { return rate_; }

  /// Updates use the mean of all ranks' gradients from now on, starting from rank 0's weights.
  /// Every rank must call it at the same iteration. Each rank keeps the whole history.
  Status join(std::shared_ptr<Group> group);

  /// Runs `count` iterations, 0 or more: passes and updates, with tests and snapshots when due.
  Status step(int count);
  /// Trains to max_iter; ends with a snapshot, the loss and a test, as configured.
  Status solve();
  /// Updates the weights with the current gradients.
  Status apply_update();
  Status snapshot();
  /// Resumes from a .solverstate and the weights it refers to.
  Status restore(const std::string& state_path);

 private:
  explicit NetSolver(Options options) : options_(std::move(options)) {}
  Status build();
  Status make_update();
  Status iterate(int count);
  Status average_over_ranks();
  Result<float> gradients();
  float smoothed(float loss);
  void show(float loss);
  Status test_all();
  Status test(size_t index);
  Result<std::vector<double>> sum_outputs(Net& net, int batches, double* loss);

  Options options_;
  std::unique_ptr<EagerNet> net_;
  std::vector<std::unique_ptr<EagerNet>> test_nets_;
  std::unique_ptr<AllReduce> sync_;  // this rank only
  std::shared_ptr<Group> group_;     // null: no other ranks
  std::optional<TreeSum> sum_;       // over the ranks' gradients
  std::optional<LrPolicy> policy_;
  std::optional<Snapshots> snapshots_;
  std::deque<float> recent_losses_;
  std::vector<float> before_;  // the weights before the last update, for snapshot_diff
  std::chrono::steady_clock::time_point shown_;  // time of the last logged loss, or of the start of
                                                 // step()
  int shown_iter_ = 0;
  int history_kinds_ = 0, iter_ = 0, current_step_ = 0;
  float rate_ = 0;
};

}  // namespace cafetiere
