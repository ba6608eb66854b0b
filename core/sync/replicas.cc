// SPDX-License-Identifier: Apache-2.0
#include "core/sync/replicas.h"

#include <algorithm>
#include <cmath>

#include "core/comm/collectives.h"
#include "core/solver/clip.h"

namespace cafetiere {

Replicas::Replicas(const SyncContext& context, ArenaUpdate update)
    : Replicas(context,
               shards_of_rank(rank_of(context.group), size_of(context.group), context.shards),
               std::move(update)) {}

Replicas::Replicas(const SyncContext& context, ShardRange shards, ArenaUpdate update)
    : context_(context),
      update_(std::move(update)),
      shards_(shards),
      history_(size_t(shards_.size()), HistoryArenas(kinds())) {
  for (HistoryArenas& shard : history_) {
    for (std::vector<float>& kind : shard) kind.resize(size_t(context.floats), 0.f);
  }
}

void Replicas::step(UpdateStep step, std::span<float> gradient, std::span<float> weights) {
  if (context_.clip >= 0) {
    const std::span<const float> learned = gradient.first(size_t(update_.learned()));
    std::vector<double> blocks(norm_blocks(learned.size()));
    block_square_sums(learned, blocks);
    const double square = tree_sum(blocks);
    clipping_ = {static_cast<float>(std::sqrt(square)), clip_factor(square, context_.clip)};
    step.gradient_scale *= clipping_.factor;
  }
  HistoryArenas& kinds = history_[at_work_];
  const std::vector<std::span<float>> history(kinds.begin(), kinds.end());
  const ArenaSlice all{0, context_.floats, weights, gradient, history};
  if (update_.needs_norms()) {
    step.trust = update_.trust_ratios(update_.prepare(step, all, *context_.pool));
  }
  update_.apply(step, all, *context_.pool);
}

Result<std::vector<HistoryArenas>> Replicas::gather() {
  const int ranks = size_of(context_.group);
  std::vector<Send> sends;
  std::vector<Receive> receives;
  if (rank_of(context_.group) != 0) {
    for (const HistoryArenas& shard : history_) {
      for (const auto& kind : shard) sends.push_back({0, kind.data(), kind.size() * sizeof(float)});
    }
    if (!sends.empty()) CFT_TRY(context_.group->exchange(sends, receives));
    return std::vector<HistoryArenas>();
  }
  std::vector<HistoryArenas> all = history_;
  all.resize(size_t(context_.shards),
             HistoryArenas(kinds(), std::vector<float>(size_t(context_.floats))));
  for (int rank = 1; rank < ranks; ++rank) {
    const ShardRange theirs = shards_of_rank(rank, ranks, context_.shards);
    for (int shard = theirs.begin; shard < theirs.end; ++shard) {
      for (auto& kind : all[size_t(shard)]) {
        receives.push_back({rank, kind.data(), kind.size() * sizeof(float)});
      }
    }
  }
  if (!receives.empty()) CFT_TRY(context_.group->exchange(sends, receives));
  return all;
}

void Replicas::restore(const std::vector<HistoryArenas>& all, const HistoryArenas& common) {
  for (int i = 0; i < shards_.size(); ++i) {
    const bool own = all.size() == size_t(context_.shards);
    const HistoryArenas& from = own ? all[size_t(shards_.begin + i)] : common;
    if (from.size() == kinds()) history_[size_t(i)] = from;
  }
}

}  // namespace cafetiere
