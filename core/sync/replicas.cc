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
  step.iter = reset_every_ > 0 ? step.iter % reset_every_ : step.iter - began_;
  HistoryArenas& kinds = history_[at_work_];
  const std::vector<std::span<float>> history(kinds.begin(), kinds.end());
  const ArenaSlice all{0, context_.floats, weights, gradient, history};
  if (update_.needs_norms()) {
    step.trust = update_.trust_ratios(update_.prepare(step, all, *context_.pool));
  }
  update_.apply(step, all, *context_.pool);
}

std::vector<std::vector<StateParts>> Replicas::placed() const {
  const int ranks = size_of(context_.group);
  std::vector<std::vector<StateParts>> all;
  for (int rank = 0; rank < ranks; ++rank) {
    const ShardRange theirs = shards_of_rank(rank, ranks, context_.shards);
    for (int shard = theirs.begin; shard < theirs.end; ++shard) {
      std::vector<StateParts>& arrays = all.emplace_back();
      for (size_t kind = 0; kind < kinds(); ++kind) {
        const bool here = rank == rank_of(context_.group);
        arrays.push_back({{rank, 0, size_t(context_.floats),
                           here ? history_[size_t(shard - shards_.begin)][kind].data() : nullptr}});
      }
    }
  }
  return all;
}

Status Replicas::restore(ModeState& state) {
  if (state.kinds != kinds()) return {};
  began_ = state.began;
  const bool own = state.replicas == size_t(context_.shards);
  for (int i = 0; i < shards_.size(); ++i) {
    for (size_t kind = 0; kind < kinds(); ++kind) {
      const auto from = own ? StateArray::kReplica : StateArray::kHistory;
      CFT_TRY(state.read({from, kind, size_t(shards_.begin + i)}, 0, history_[size_t(i)][kind]));
    }
  }
  return {};
}

std::unique_ptr<ModeState> Replicas::take_history(std::string mode) {
  auto held = std::make_unique<HeldHistory>(std::move(history_[0]), std::move(mode));
  held->began = began_;
  return held;
}

void Replicas::reset_history() {
  for (HistoryArenas& shard : history_) {
    for (std::vector<float>& kind : shard) std::ranges::fill(kind, 0.f);
  }
}

}  // namespace cafetiere
