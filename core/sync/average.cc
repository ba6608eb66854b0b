// SPDX-License-Identifier: Apache-2.0
#include "core/sync/average.h"

#include <algorithm>

namespace cafetiere {

Average::Average(const SyncContext& context, ArenaUpdate update, const caffe::SyncParameter& sync,
                 Exchange exchange)
    : SynchronousMode(context.group),
      log_(context.log),
      mode_(sync.mode()),
      period_(sync.period()),
      rule_(history_rule(sync)),
      exchange_(exchange),
      narrow_(exchange.rounds()),
      replicas_(context, std::move(update)),
      mean_(context),
      outer_(outer_step_of(sync, mean_.begin(), mean_.end(), replicas_.learned())) {
  if (rule_ == HistoryRule::kReset) replicas_.reset_every(period_);
}

void Average::begin_shard(int shard, std::span<float> weights) {
  if (shard == shards().begin) {
    start_.assign(weights.begin(), weights.end());
  } else {
    std::ranges::copy(start_, weights.begin());
  }
  replicas_.begin_shard(shard, weights);
}

/// 16 bits would round small steps of the weights away: the deltas since the round began are sent.
Status Average::end_shard(int, std::span<float> weights) {
  for (size_t i = 0; narrow_ && i < weights.size(); ++i) weights[i] -= start_[i];
  return mean_.add(weights);
}

Status Average::end_round(const UpdateStep&, std::span<float>, std::span<float> weights) {
  const size_t begin = mean_.begin(), count = mean_.end() - begin;
  const std::span<const float> start = std::span(start_).subspan(begin, count);
  const std::span<float> mine = weights.subspan(begin, count);
  CFT_TRY(mean_.reduce(weights, exchange_));
  for (size_t i = 0; narrow_ && i < count; ++i) mine[i] += start[i];
  if (outer_) outer_->apply(start, mine);
  for (size_t i = 0; narrow_ && i < count; ++i) mine[i] -= start[i];
  CFT_TRY(mean_.gather(weights, exchange_));
  for (size_t i = 0; narrow_ && i < weights.size(); ++i) weights[i] += start_[i];
  return end_history();
}

/// Always in float32: 16 bits lack the range of squared gradients, and history has no deltas.
Status Average::end_history() {
  const Exchange exchange = exchange_.in_float32();
  const int shards = replicas_.shards().size();
  if (rule_ == HistoryRule::kReset) replicas_.reset_history();
  for (size_t kind = 0; rule_ == HistoryRule::kAveraged && kind < replicas_.kinds(); ++kind) {
    for (int i = 0; i < shards; ++i) CFT_TRY(mean_.add(replicas_.history(i)[kind]));
    std::vector<float>& mean = replicas_.history(shards - 1)[kind];
    CFT_TRY(mean_.reduce(mean, exchange));
    CFT_TRY(mean_.gather(mean, exchange));
    for (int i = 0; i + 1 < shards; ++i) replicas_.history(i)[kind] = mean;
  }
  return {};
}

Status Average::show_state(const StateUse& use) {
  PlacedState placed{.mode = mode_, .replicas = replicas_.placed()};
  placed.history = placed.replicas.front();
  if (rule_ != HistoryRule::kKept) placed.replicas.clear();  // all have the same
  if (outer_) placed.outer.push_back(outer_->placed(group(), mean_.floats()));
  return show_placed(group(), placed, use);
}

/// Of the outer velocity each rank has a slice, and that of a lost rank is gone.
std::unique_ptr<ModeState> Average::own_state() {
  if (outer_) log_.notice("the ranks change: the momentum of {}'s outer step restarts at 0", mode_);
  return replicas_.take_history();
}

Status Average::restore(ModeState& state) {
  // Where each round resets the history, the first one starts from zero as well.
  if (rule_ != HistoryRule::kReset) {
    CFT_TRY(replicas_.restore(state));
  }
  return outer_ ? outer_->restore(state) : Status();
}

}  // namespace cafetiere
