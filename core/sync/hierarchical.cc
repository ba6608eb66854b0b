// SPDX-License-Identifier: Apache-2.0
#include "core/sync/hierarchical.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "core/comm/collectives.h"
#include "core/data/hash.h"

namespace cafetiere {
namespace {

/// The first rank of each team, then the number of ranks.
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

}  // namespace

Result<std::unique_ptr<Sync>> Hierarchical::make(const SyncContext& context, ArenaUpdate update,
                                                 int period, int team_size) {
  const int rank = rank_of(context.group), ranks = size_of(context.group);
  if (context.shards % ranks != 0) {
    return invalid_argument(
        fmt::format("mode \"hierarchical\" needs the same number of shards on each rank: {} shards "
                    "cannot be divided evenly among {} ranks",
                    context.shards, ranks));
  }
  CFT_ASSIGN(const std::vector<int> bounds, team_bounds(context.group, team_size));
  std::vector<int> team, leaders(bounds.begin(), bounds.end() - 1);
  for (size_t t = 0; t + 1 < bounds.size(); ++t) {
    if (rank < bounds[t] || rank >= bounds[t + 1]) continue;
    for (int r = bounds[t]; r < bounds[t + 1]; ++r) team.push_back(r);
  }
  const double share = double(team.size()) / double(ranks);
  return std::unique_ptr<Sync>(
      new Hierarchical(context, team, leaders, share, period, std::move(update)));
}

Hierarchical::Hierarchical(const SyncContext& context, const std::vector<int>& team,
                           const std::vector<int>& leaders, double share, int period,
                           ArenaUpdate update)
    : SynchronousMode(context.group), context_(context), period_(period), share_(float(share)) {
  const int shards_each = context.shards / size_of(context.group);
  team_shards_ = {team.front() * shards_each, (team.back() + 1) * shards_each};
  SyncContext inside = context;
  inside.shards = team_shards_.size();
  if (context.group) {
    team_.emplace(context.group, team);
    inside.group = &*team_;
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
  replicas_equal_ = (step.iter + 1) % period_ == 0;
  return replicas_equal_ ? average(weights) : Status();
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

}  // namespace cafetiere
