// SPDX-License-Identifier: Apache-2.0
#include "core/sync/hierarchical.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "core/comm/collectives.h"
#include "core/data/hash.h"

namespace cafetiere {
namespace {

Result<std::vector<int>> team_bounds(Group* group, int team_size) {
  std::vector<int> bounds{0};
  const int ranks = size_of(group);
  if (team_size > 0) {
    for (int at = team_size; at < ranks; at += team_size) bounds.push_back(at);
  } else {
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    const Hash128 mine = hash128(std::as_bytes(std::span(name)), 0);
    std::vector<Hash128> hosts(static_cast<size_t>(ranks));
    CFT_TRY(all_gather(group, std::as_bytes(std::span(&mine, 1)),
                       std::as_writable_bytes(std::span(hosts))));
    for (int rank = 1; rank < ranks; ++rank) {
      if (hosts[size_t(rank)] != hosts[size_t(rank - 1)]) bounds.push_back(rank);
    }
  }
  bounds.push_back(ranks);
  return bounds;
}

size_t team_of(int rank, const std::vector<int>& bounds) {
  return size_t(std::ranges::upper_bound(bounds, rank) - bounds.begin()) - 1;
}

}  // namespace

Result<std::unique_ptr<Sync>> Hierarchical::make(const SyncContext& context, ArenaUpdate update,
                                                 int period, int team_size) {
  const int ranks = size_of(context.group);
  if (context.shards % ranks != 0) {
    return invalid_argument(
        fmt::format("mode \"hierarchical\" needs the same number of shards on each rank: {} shards "
                    "cannot be divided evenly among {} ranks",
                    context.shards, ranks));
  }
  CFT_ASSIGN(std::vector<int> bounds, team_bounds(context.group, team_size));
  return std::unique_ptr<Sync>(
      new Hierarchical(context, std::move(bounds), period, std::move(update)));
}

Hierarchical::Hierarchical(const SyncContext& context, std::vector<int> bounds, int period,
                           ArenaUpdate update)
    : SynchronousMode(context.group),
      context_(context),
      bounds_(std::move(bounds)),
      mine_(team_of(rank_of(context.group), bounds_)),
      period_(period),
      share_(float(double(bounds_[mine_ + 1] - bounds_[mine_]) / double(bounds_.back()))) {
  std::vector<int> team(size_t(bounds_[mine_ + 1] - bounds_[mine_]));
  std::iota(team.begin(), team.end(), bounds_[mine_]);
  const int shards_each = context.shards / size_of(context.group);
  team_shards_ = {team.front() * shards_each, (team.back() + 1) * shards_each};
  SyncContext inside = context;
  inside.shards = team_shards_.size();
  if (context.group) {
    team_.emplace(context.group, team);
    inside.group = &*team_;
    const std::vector<int> leaders(bounds_.begin(), bounds_.end() - 1);
    if (context.group->rank() == team.front()) leaders_.emplace(context.group, leaders);
  }
  steps_ = std::make_unique<AllReduce>(inside, std::move(update));
  if (leaders_) {
    const int me = leaders_->rank();
    sum_.emplace(ShardRange{me, me + 1}, leaders_->size(), size_t(context.floats), context.pool);
  }
}

ShardRange Hierarchical::shards() const {
  const ShardRange mine = steps_->shards();
  return {team_shards_.begin + mine.begin, team_shards_.begin + mine.end};
}

Status Hierarchical::end_round(const UpdateStep& step, std::span<float> gradient,
                               std::span<float> weights) {
  CFT_TRY(steps_->end_round(step, gradient, weights));
  const bool ends = (step.iter + 1) % period_ == 0;
  replicas_equal_ = ends || teams() == 1;
  return ends ? average(weights) : Status();
}

Status Hierarchical::consolidate(bool, std::span<float> weights) {
  if (replicas_equal_) return {};
  replicas_equal_ = true;
  return average(weights);
}

Status Hierarchical::average(std::span<float> weights) {
  if (!team_) return {};
  if (leaders_ && leaders_->size() > 1) {
    for (float& weight : weights) weight *= share_;
    const std::vector<size_t> slices = even_slices(weights.size(), leaders_->size());
    const size_t begin = slices[size_t(leaders_->rank())];
    const size_t end = slices[size_t(leaders_->rank()) + 1];
    CFT_TRY(sum_->add(weights));
    CFT_TRY(reduce_scatter(&*leaders_, *sum_, slices, weights.subspan(begin, end - begin)));
    sum_->reset();
    CFT_TRY(all_gather_slices(&*leaders_, weights, slices));
  }
  return team_->size() > 1 ? broadcast(&*team_, 0, std::as_writable_bytes(weights)) : Status();
}

Status Hierarchical::show_state(const StateUse& use) {
  if (teams() == 1) return steps_->show_state(use);
  PlacedState placed{.mode = "hierarchical"};
  for (size_t t = 0; t < teams(); ++t) {
    const int first = bounds_[t], ranks = bounds_[t + 1] - first;
    placed.replicas.push_back(steps_->placed(first, ranks, t == mine_));
  }
  placed.history = placed.replicas.front();
  return show_placed(group(), placed, use);
}

Status Hierarchical::restore(ModeState& state) {
  if (state.replicas != teams()) return steps_->restore(state);
  return steps_->restore(state, {StateArray::kReplica, 0, mine_});
}

}  // namespace cafetiere
