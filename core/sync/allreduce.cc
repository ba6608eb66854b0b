// SPDX-License-Identifier: Apache-2.0
#include "core/sync/allreduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/observe/time_account.h"
#include "core/observe/trace.h"
#include "core/solver/clip.h"

namespace cafetiere {
namespace {

/// All ranks' values of their slices in arena order: those of the first bucket, then of the second.
/// `mine`: one list per bucket.
template <class T>
Result<std::vector<T>> gather_in_order(Group* group, const std::vector<std::vector<T>>& mine) {
  const size_t buckets = mine.size();
  std::vector<uint64_t> counts(buckets);
  std::vector<T> values;
  for (size_t b = 0; b < buckets; ++b) {
    counts[b] = mine[b].size();
    values.insert(values.end(), mine[b].begin(), mine[b].end());
  }
  std::vector<std::byte> bytes(buckets * sizeof(uint64_t) + values.size() * sizeof(T));
  std::memcpy(bytes.data(), counts.data(), buckets * sizeof(uint64_t));
  if (!values.empty()) {
    std::memcpy(bytes.data() + buckets * sizeof(uint64_t), values.data(),
                values.size() * sizeof(T));
  }
  CFT_ASSIGN(const auto parts, all_gather_v(group, bytes));
  const size_t head = buckets * sizeof(uint64_t);
  std::vector<size_t> at(parts.size(), head);
  std::vector<T> all;
  for (size_t b = 0; b < buckets; ++b) {
    for (size_t rank = 0; rank < parts.size(); ++rank) {
      uint64_t count = 0;
      const size_t size = parts[rank].size();
      if (size >= head) std::memcpy(&count, parts[rank].data() + b * sizeof count, sizeof count);
      if (size < head || count > (size - at[rank]) / sizeof(T)) {
        return internal_error(fmt::format(
            "rank {} sent {} bytes of norms, which do not match their counts", rank, size));
      }
      const size_t to = all.size();
      all.resize(to + count);
      if (count > 0) std::memcpy(&all[to], parts[rank].data() + at[rank], count * sizeof(T));
      at[rank] += count * sizeof(T);
    }
  }
  return all;
}

}  // namespace

AllReduce::AllReduce(const SyncContext& context, ArenaUpdate update, Exchange exchange)
    : SynchronousMode(context.group),
      context_(context),
      rounds_(exchange.rounds()),
      update_(std::move(update)),
      exchange_(context, exchange) {
  const size_t kinds = size_t(update_.history_per_param());
  const int rank = rank_of(context.group), ranks = size_of(context.group);
  for (const auto& s : GradientExchange::slices(size_t(context.floats), rank, ranks)) {
    slices_.push_back({s.begin, s.end, HistoryArenas(kinds)});
    for (std::vector<float>& kind : slices_.back().history) kind.resize(s.end - s.begin, 0.f);
  }
}

Status AllReduce::gradient(const UpdateStep&, double, std::span<float> gradient, std::span<float>) {
  // The last shard's gradient is added bucket by bucket, as it is sent.
  return ++added_ < shards().size() ? exchange_.add(gradient) : Status();
}

Status AllReduce::end_round(const UpdateStep& last, std::span<float> gradient,
                            std::span<float> weights) {
  added_ = 0;
  {
    const Trace::Span span(context_.trace, "step", "wait for the exchange");
    CFT_TRY(exchange_.finish(gradient));
  }
  UpdateStep step = last;
  if (context_.clip >= 0) {
    CFT_TRY(clip(gradient));
    step.gradient_scale *= clipping_.factor;
  }
  if (!rounds_) {
    CFT_TRY(update(step, gradient, weights));
    return exchange_.gather(weights);
  }
  // 16 bits would round small steps of the weights away: the deltas are sent, and all ranks, the
  // owner too, add what they receive.
  before_.clear();
  for (const Slice& s : slices_) {
    before_.insert(before_.end(), weights.begin() + ptrdiff_t(s.begin),
                   weights.begin() + ptrdiff_t(s.end));
  }
  CFT_TRY(update(step, gradient, weights));
  size_t at = 0;
  for (const Slice& s : slices_) {
    for (size_t i = s.begin; i < s.end; ++i, ++at) {
      gradient[i] = weights[i] - before_[at];
      weights[i] = before_[at];
    }
  }
  CFT_TRY(exchange_.gather(gradient, true));
  for (size_t i = 0; i < weights.size(); ++i) weights[i] += gradient[i];
  return {};
}

ArenaSlice AllReduce::arena_slice(Slice& slice, std::span<float> gradient, std::span<float> weights,
                                  std::vector<std::span<float>>& history) {
  history.assign(slice.history.begin(), slice.history.end());
  return {int64_t(slice.begin), int64_t(slice.end), weights,
          gradient.subspan(slice.begin, slice.end - slice.begin), history};
}

Status AllReduce::update(const UpdateStep& given, std::span<float> gradient,
                         std::span<float> weights) {
  const Trace::Span span(context_.trace, "step", "update");
  const TimeAccount::Span time(context_.account, Activity::kComputing);
  UpdateStep step = given;
  std::vector<std::span<float>> history;
  if (update_.needs_norms()) {
    std::vector<std::vector<SquareNorms>> mine;
    for (Slice& s : slices_) {
      mine.push_back(
          update_.prepare(step, arena_slice(s, gradient, weights, history), *context_.pool));
    }
    CFT_ASSIGN(const auto norms, gather_in_order(context_.group, mine));
    step.trust = update_.trust_ratios(norms);
  }
  for (Slice& s : slices_) {
    update_.apply(step, arena_slice(s, gradient, weights, history), *context_.pool);
  }
  return {};
}

Status AllReduce::clip(std::span<const float> gradient) {
  const size_t learned = size_t(update_.learned());
  std::vector<std::vector<double>> mine;
  for (const Slice& s : slices_) {
    const size_t count = std::min(s.end, std::max(learned, s.begin)) - s.begin;
    block_square_sums(gradient.subspan(s.begin, count), mine.emplace_back(norm_blocks(count)));
  }
  CFT_ASSIGN(const std::vector<double> terms, gather_in_order(context_.group, mine));
  const double square = tree_sum(terms);
  clipping_ = {static_cast<float>(std::sqrt(square)), clip_factor(square, context_.clip)};
  return {};
}

std::vector<StateParts> AllReduce::placed(int first, int ranks, bool here) const {
  std::vector<StateParts> kinds(size_t(update_.history_per_param()));
  for (int rank = 0; rank < ranks; ++rank) {
    const auto slices = GradientExchange::slices(size_t(context_.floats), rank, ranks);
    const bool mine = here && rank == rank_of(context_.group);
    for (size_t kind = 0; kind < kinds.size(); ++kind) {
      for (size_t i = 0; i < slices.size(); ++i) {
        kinds[kind].push_back({first + rank, slices[i].begin, slices[i].end,
                               mine ? slices_[i].history[kind].data() : nullptr});
      }
    }
  }
  return kinds;
}

Status AllReduce::show_state(const StateUse& use) {
  const PlacedState state{.history = placed(0, size_of(context_.group), true)};
  return show_placed(context_.group, state, use);
}

Status AllReduce::restore(ModeState& state, StateArray array) {
  for (Slice& s : slices_) {
    for (array.index = 0; array.index < std::min(s.history.size(), state.kinds); ++array.index) {
      CFT_TRY(state.read(array, s.begin, s.history[array.index]));
    }
  }
  return {};
}

}  // namespace cafetiere
