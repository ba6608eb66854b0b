// SPDX-License-Identifier: Apache-2.0
#include "core/train/net_solver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <numeric>

#include "core/base/split_list.h"
#include "core/comm/collectives.h"
#include "core/graph/arena.h"
#include "core/model/weights.h"
#include "core/train/solver_checks.h"
#include "core/train/solver_log.h"
#include "core/train/tester.h"

namespace cafetiere {

Result<std::unique_ptr<NetSolver>> NetSolver::create(Options options) {
  std::unique_ptr<NetSolver> solver(new NetSolver(std::move(options)));
  CFT_TRY(solver->build());
  return solver;
}

Status NetSolver::build() {
  const caffe::SolverParameter& p = param();
  for (const std::string& note : options_.solver.notes) options_.net.log.info("{}", note);
  CFT_TRY(check_solver(p).with_context(options_.solver.source));
  if (p.random_seed() >= 0) options_.net.net.seed = uint64_t(p.random_seed());
  CFT_ASSIGN(const NetChoice choice, training_net(options_.solver, nullptr));
  CFT_ASSIGN(net_, EagerNet::create(choice, options_.net));
  CFT_TRY(check_layer_names(net_->net->graph()).with_context(choice.net.source));
  CFT_ASSIGN(const std::vector<NetChoice> tests, cafetiere::test_nets(options_.solver, nullptr));
  if (!tests.empty() && p.test_interval() <= 0) {
    return invalid_argument(options_.solver.source + ": test nets need a test_interval above 0");
  }
  for (const NetChoice& test : tests) {
    CFT_ASSIGN(auto net, EagerNet::create(test, options_.net));
    CFT_TRY(net->net->share_with(*net_->net, nullptr));
    test_nets_.push_back(std::move(net));
  }
  CFT_TRY(make_update());
  for (const std::string& entry : p.weights()) {
    for (const std::string& path : split_list(entry)) {
      options_.net.log.info("Finetuning from {}", path);
      CFT_TRY(net_->copy_from(path, options_.net.log));
      for (auto& test : test_nets_) CFT_TRY(test->copy_from(path, options_.net.log));
    }
  }
  if (p.snapshot() > 0) {  // fail now if it cannot be written
    CFT_ASSIGN(snapshots_, Snapshots::make(options_.solver, options_.net.log));
  }
  return {};
}

Status NetSolver::make_update() {
  const Graph& graph = net_->net->graph();
  std::vector<ParamSpan> spans = param_spans(graph);
  // Forward updates the statistics itself.
  std::erase_if(spans, [](const ParamSpan& span) { return span.statistic; });
  CFT_ASSIGN(ArenaUpdate update,
             ArenaUpdate::make(param(), std::move(spans), graph.learned_size()));
  history_kinds_ = update.history_per_param();
  CFT_ASSIGN(policy_, LrPolicy::create(param()));
  sync_ = std::make_unique<AllReduce>(SyncContext{.floats = graph.arena_size(),
                                                  .clip = param().clip_gradients(),
                                                  .pool = &net_->net->pool(),
                                                  .log = options_.net.log},
                                      std::move(update));
  return {};
}

void NetSolver::set_base_lr(float rate) {
  options_.solver.param.set_base_lr(rate);
  if (auto policy = LrPolicy::create(param()); policy.ok()) policy_ = *std::move(policy);
}

Status NetSolver::join(std::shared_ptr<Group> group) {
  const std::span<float> weights = net_->net->param_arena();
  const int rank = group->rank(), ranks = group->size();
  const std::array mine{int64_t(weights.size()), int64_t{iter_}};
  std::vector<int64_t> all(mine.size() * size_t(ranks));
  CFT_TRY(all_gather(group.get(), std::as_bytes(std::span(mine)),
                     std::as_writable_bytes(std::span(all))));
  for (size_t r = 0; r < size_t(ranks); ++r) {
    if (all[2 * r] == all[0] && all[2 * r + 1] == all[1]) continue;
    return invalid_argument(
        fmt::format("rank {} has {} floats of parameters and is at iteration {}, rank 0 has {} and "
                    "is at {}: give all "
                    "ranks the same net, solver and state",
                    r, all[2 * r], all[2 * r + 1], all[0], all[1]));
  }
  CFT_TRY(broadcast(group.get(), 0, std::as_writable_bytes(weights)));
  sum_.emplace(ShardRange{rank, rank + 1}, ranks, weights.size(), &net_->net->pool());
  group_ = std::move(group);
  return {};
}

Status NetSolver::step(int count) {
  if (count < 0 || count > std::numeric_limits<int>::max() - iter_) {
    return invalid_argument(fmt::format(
        "{} iterations after {}: the number must not be negative, nor go beyond the solver's last, "
        "{}",
        count, iter_, std::numeric_limits<int>::max()));
  }
  Status status = iterate(count);
  if (!status.ok() && group_) group_->cancel();  // otherwise the others would wait for this rank
  return status;
}

Status NetSolver::iterate(int count) {
  const caffe::SolverParameter& p = param();
  recent_losses_.clear();
  shown_ = std::chrono::steady_clock::now();
  shown_iter_ = iter_;
  for (const int end = iter_ + count; iter_ < end;) {
    const bool test_due = p.test_interval() > 0 && iter_ % p.test_interval() == 0;
    if (test_due && (iter_ > 0 || p.test_initialization())) CFT_TRY(test_all());
    if (options_.on_start) CFT_TRY(options_.on_start());
    net_->net->clear_param_diffs();
    CFT_ASSIGN(const float loss, gradients());
    const float mean = smoothed(loss);
    if (p.display() > 0 && iter_ % p.display() == 0) show(mean);
    if (options_.on_gradients_ready) CFT_TRY(options_.on_gradients_ready());
    CFT_TRY(apply_update());
    if (p.snapshot() > 0 && iter_ % p.snapshot() == 0) CFT_TRY(snapshot());
  }
  return {};
}

/// Runs one iteration's passes; returns their mean loss.
Result<float> NetSolver::gradients() {
  const int last = int(net_->net->graph().nodes().size()) - 1;
  float loss = 0;
  for (int i = 0; i < param().iter_size(); ++i) {
    if (options_.on_pass) CFT_TRY(options_.on_pass());
    CFT_ASSIGN(const float of_pass, net_->net->forward(0, last));
    CFT_TRY(net_->net->backward(last, 0));
    loss += of_pass;
  }
  return loss / float(param().iter_size());
}

/// The mean of the last losses since step() began, of which `loss` is the newest.
float NetSolver::smoothed(float loss) {
  recent_losses_.push_back(loss);
  if (int(recent_losses_.size()) > param().average_loss()) recent_losses_.pop_front();
  const double sum = std::accumulate(recent_losses_.begin(), recent_losses_.end(), 0.0);
  return float(sum / double(recent_losses_.size()));
}

void NetSolver::show(float loss) {
  const Logger& log = options_.net.log;
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::max(1e-9, std::chrono::duration<double>(now - shown_).count());
  log.info("Iteration {} ({:g} iter/s, {:g}s/{} iters), loss = {:g}", iter_,
           (iter_ - shown_iter_) / seconds, seconds, param().display(), loss);
  shown_ = now;
  shown_iter_ = iter_;
  const Net& net = *net_->net;
  int number = 0;
  for (int output : net.graph().outputs()) {
    const Net::Blob& blob = net.blobs()[size_t(net.blob_index(output))];
    for (int64_t i = 0; i < blob.shape.count(); ++i) {
      const double value = double(blob.data.get()[i]);
      log.info("    Train net output #{}: {} = {:g}{}", number++, blob.name, value,
               loss_note(blob.loss_weight, value));
    }
  }
}

/// Before clipping, as Caffe's ranks do.
Status NetSolver::average_over_ranks() {
  if (!group_) return {};
  const std::span<float> gradient = net_->net->diff_arena();
  sum_->reset();
  CFT_TRY(sum_->add(gradient));
  CFT_TRY(all_reduce(group_.get(), *sum_, gradient));
  const float share = 1.F / float(group_->size());
  for (float& value : gradient) value *= share;
  return {};
}

Status NetSolver::apply_update() {
  Net& net = *net_->net;
  CFT_TRY(average_over_ranks());
  rate_ = rate_at(*policy_, param(), iter_, &current_step_, options_.net.log);
  const int passes = param().iter_size();
  const UpdateStep step{iter_, rate_, 1.f / float(passes), passes};
  if (param().snapshot_diff()) before_.assign(net.param_arena().begin(), net.param_arena().end());
  CFT_TRY(sync_->gradient(step, 0, net.diff_arena(), net.param_arena()));
  CFT_TRY(sync_->end_round(step, net.diff_arena(), net.param_arena()));
  log_clipping(sync_->last_clipping(), param(), options_.net.log);
  if (param().display() > 0 && iter_ % param().display() == 0) {
    options_.net.log.info("Iteration {}, lr = {:g}", iter_, rate_);
  }
  ++iter_;
  return {};
}

Status NetSolver::test_all() {
  for (size_t i = 0; i < test_nets_.size(); ++i) CFT_TRY(test(i));
  return {};
}

Status NetSolver::test(size_t index) {
  const int batches = param().test_iter(int(index));
  if (batches == 0) return {};
  const Logger& log = options_.net.log;
  log.info("Iteration {}, Testing net (#{})", iter_, index);
  Net& net = *test_nets_[index]->net;
  double loss = 0;
  CFT_ASSIGN(const std::vector<double> sums, sum_outputs(net, batches, &loss));
  if (param().test_compute_loss()) log.info("Test loss: {:g}", loss / batches);
  size_t number = 0;
  for (int output : net.graph().outputs()) {
    const Net::Blob& blob = net.blobs()[size_t(net.blob_index(output))];
    for (int64_t i = 0; i < blob.shape.count() && number < sums.size(); ++i, ++number) {
      const double mean = sums[number] / batches;
      log.info("    Test net output #{}: {} = {:g}{}", number, blob.name, mean,
               loss_note(blob.loss_weight, mean));
    }
  }
  return {};
}

/// Every element of every output, summed over the batches.
Result<std::vector<double>> NetSolver::sum_outputs(Net& net, int batches, double* loss) {
  std::vector<double> sums;
  for (int batch = 0; batch < batches; ++batch) {
    CFT_ASSIGN(const float of_batch, net.forward(0, int(net.graph().nodes().size()) - 1));
    *loss += double(of_batch);
    size_t at = 0;
    for (int output : net.graph().outputs()) {
      const Net::Blob& blob = net.blobs()[size_t(net.blob_index(output))];
      sums.resize(std::max(sums.size(), at + size_t(blob.shape.count())), 0);
      for (int64_t i = 0; i < blob.shape.count(); ++i) sums[at++] += double(blob.data.get()[i]);
    }
  }
  return sums;
}

Status NetSolver::solve() {
  const caffe::SolverParameter& p = param();
  const Logger& log = options_.net.log;
  log.info("Solving {}", net_->net->graph().name());
  log.info("Learning Rate Policy: {}", p.lr_policy());
  CFT_TRY(step(std::max(0, p.max_iter() - iter_)));
  const bool taken = p.snapshot() > 0 && iter_ % p.snapshot() == 0;
  if (p.snapshot_after_train() && !taken) CFT_TRY(snapshot());
  if (p.display() > 0 && iter_ % p.display() == 0) {
    Net& net = *net_->net;
    CFT_ASSIGN(const float loss, net.forward(0, int(net.graph().nodes().size()) - 1));
    log.info("Iteration {}, loss = {:g}", iter_, smoothed(loss));
  }
  if (p.test_interval() > 0 && iter_ % p.test_interval() == 0) CFT_TRY(test_all());
  log.info("Optimization Done.");
  return {};
}

Status NetSolver::snapshot() {
  if (!snapshots_) {
    CFT_ASSIGN(snapshots_, Snapshots::make(options_.solver, options_.net.log));
  }
  const Net& net = *net_->net;
  std::vector<float> moved(before_.size());
  std::ranges::transform(before_, net.param_arena(), moved.begin(), std::minus());
  return sync_->show_state([&](ModeState& mode) {
    TrainingState state(net.graph(), iter_, current_step_, mode);
    return snapshots_->write({net.graph(), net.param_arena(), moved, state});
  });
}

Status NetSolver::restore(const std::string& state_path) {
  CFT_ASSIGN(const Snapshot snapshot, open_snapshot(state_path));
  Net& net = *net_->net;
  const auto state = mode_state(net.graph(), snapshot.state, size_t(history_kinds_));
  if (!state.ok()) return state.status().with_context(state_path);
  CFT_TRY(net.copy_from(snapshot.weights, nullptr).with_context(state_path));
  CFT_TRY(sync_->restore(**state));
  iter_ = snapshot.state->outline.iter;
  current_step_ = snapshot.state->outline.current_step;
  net.continue_after(int64_t(iter_) * param().iter_size());
  return {};
}

}  // namespace cafetiere
