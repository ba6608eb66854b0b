#include "core/sync/allreduce.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/comm/collectives.h"
#include "core/solver/clip.h"

namespace cafetiere {
namespace {

/// The values of all ranks, one after another.
template <class T>
Result<std::vector<T>> gather(Group* group, const std::vector<T>& mine) {
  CFT_ASSIGN(const auto parts, all_gather_v(group, std::as_bytes(std::span(mine))));
  std::vector<T> all;
  for (const auto& bytes : parts) {
    const size_t at = all.size();
    all.resize(at + bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(all.data() + at, bytes.data(), bytes.size());
  }
  return all;
}

}  // namespace

AllReduce::AllReduce(const SyncContext& context, ArenaUpdate update)
    : context_(context),
      update_(std::move(update)),
      sum_(shards_of_rank(rank_of(context.group), size_of(context.group), context.shards),
           context.shards, size_t(context.floats), context.pool),
      slices_(even_slices(size_t(context.floats), size_of(context.group))),
      begin_(slices_[size_t(rank_of(context.group))]),
      end_(slices_[size_t(rank_of(context.group)) + 1]),
      history_(size_t(update_.history_per_param())) {
  for (std::vector<float>& kind : history_) kind.resize(end_ - begin_, 0.f);
}

Status AllReduce::end_round(const UpdateStep& last, std::span<float> gradient,
                            std::span<float> weights) {
  UpdateStep step = last;
  const std::span<float> mine = gradient.subspan(begin_, end_ - begin_);
  CFT_TRY(reduce_scatter(context_.group, sum_, slices_, mine));
  sum_.reset();
  if (context_.clip >= 0) {
    CFT_TRY(clip(mine));
    step.gradient_scale *= clipping_.factor;
  }
  const std::vector<std::span<float>> history(history_.begin(), history_.end());
  const ArenaSlice slice{int64_t(begin_), int64_t(end_), weights, mine, history};
  if (update_.needs_norms()) {
    CFT_ASSIGN(const auto norms,
               gather(context_.group, update_.prepare(step, slice, *context_.pool)));
    step.trust = update_.trust_ratios(norms);
  }
  update_.apply(step, slice, *context_.pool);
  return all_gather_slices(context_.group, weights, slices_);
}

Status AllReduce::clip(std::span<const float> gradient) {
  const size_t learned = size_t(update_.learned());
  const size_t count = std::min(end_, std::max(learned, begin_)) - begin_;
  std::vector<double> blocks(norm_blocks(count));
  block_square_sums(gradient.first(count), blocks);
  CFT_ASSIGN(const std::vector<double> terms, gather(context_.group, blocks));
  const double square = tree_sum(terms);
  clipping_ = {static_cast<float>(std::sqrt(square)), clip_factor(square, context_.clip)};
  return {};
}

Result<SyncState> AllReduce::state() {
  SyncState state;
  for (const std::vector<float>& mine : history_) {
    std::vector<float> arena(slices_.back());
    std::copy(mine.begin(), mine.end(), arena.begin() + ptrdiff_t(begin_));
    CFT_TRY(all_gather_slices(context_.group, arena, slices_));
    state.history.push_back(std::move(arena));
  }
  return state;
}

Status AllReduce::restore(const SyncState& state) {
  for (size_t i = 0; i < std::min(history_.size(), state.history.size()); ++i) {
    std::copy(state.history[i].begin() + ptrdiff_t(begin_),
              state.history[i].begin() + ptrdiff_t(end_), history_[i].begin());
  }
  return {};
}

}  // namespace cafetiere
