// SPDX-License-Identifier: Apache-2.0
#include "core/sync/average.h"

#include <algorithm>

namespace cafetiere {

Average::Average(const SyncContext& context, ArenaUpdate update, int period, HistoryRule history,
                 Exchange exchange)
    : group_(context.group),
      period_(period),
      rule_(history),
      rounds_(exchange.rounds()),
      replicas_(context, std::move(update)),
      mean_(context, exchange) {}

/// In 16 bits weights would lose their small steps: the moves since the round began travel instead.
Status Average::end_shard(int, std::span<float> weights) {
  if (rounds_) {
    for (size_t i = 0; i < weights.size(); ++i) weights[i] -= replicas_.start()[i];
  }
  return mean_.add(weights);
}

Status Average::end_round(const UpdateStep&, std::span<float>, std::span<float> weights) {
  const std::span<const float> start = replicas_.start();
  const size_t begin = mean_.begin(), count = mean_.end() - begin;
  const std::span<float> mine = weights.subspan(begin, count);
  CFT_TRY(mean_.reduce(weights));
  if (!rounds_) {
    outer_step(start.subspan(begin, count), mine);
    CFT_TRY(mean_.gather(weights));
    return end_history();
  }
  for (size_t i = 0; i < count; ++i) mine[i] += start[begin + i];
  outer_step(start.subspan(begin, count), mine);
  for (size_t i = 0; i < count; ++i) mine[i] -= start[begin + i];
  CFT_TRY(mean_.gather(weights));
  for (size_t i = 0; i < weights.size(); ++i) weights[i] += start[i];
  return end_history();
}

Status Average::end_history() {
  const int shards = replicas_.shards().size();
  for (size_t kind = 0; rule_ != HistoryRule::kKept && kind < replicas_.kinds(); ++kind) {
    if (rule_ == HistoryRule::kAveraged) {
      for (int i = 0; i < shards; ++i) CFT_TRY(mean_.add(replicas_.history(i)[kind]));
      CFT_TRY(mean_.reduce(replicas_.history(shards - 1)[kind]));
      CFT_TRY(mean_.gather(replicas_.history(shards - 1)[kind]));
      for (int i = 0; i + 1 < shards; ++i) {
        replicas_.history(i)[kind] = replicas_.history(shards - 1)[kind];
      }
    } else {
      for (int i = 0; i < shards; ++i) std::ranges::fill(replicas_.history(i)[kind], 0.f);
    }
  }
  return {};
}

Result<SyncState> Average::state() {
  SyncState state;
  state.mode = "average";
  if (rule_ == HistoryRule::kKept) {
    CFT_ASSIGN(state.replicas, replicas_.gather());
  }
  if (rank_of(group_) == 0) state.history = replicas_.history(0);
  return state;
}

Status Average::restore(const SyncState& state) {
  replicas_.restore(state.replicas, state.history);
  return {};
}

}  // namespace cafetiere
