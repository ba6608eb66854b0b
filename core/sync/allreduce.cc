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

AllReduce::AllReduce(Group* group, int shards, int64_t floats, ArenaUpdate update, ThreadPool* pool)
    : group_(group),
      pool_(pool),
      update_(std::move(update)),
      sum_(shards_of_rank(rank_of(group), size_of(group), shards), shards, size_t(floats), pool),
      slices_(even_slices(size_t(floats), size_of(group))),
      begin_(slices_[size_t(rank_of(group))]),
      end_(slices_[size_t(rank_of(group)) + 1]),
      history_(size_t(update_.history_per_param())) {
  for (std::vector<float>& kind : history_) kind.resize(end_ - begin_, 0.f);
}

Status AllReduce::step(UpdateStep step, float limit, std::span<float> gradient,
                       std::span<float> weights) {
  const std::span<float> mine = gradient.subspan(begin_, end_ - begin_);
  CFT_TRY(reduce_scatter(group_, sum_, slices_, mine));
  sum_.reset();
  if (limit >= 0) {
    CFT_TRY(clip(mine, limit));
    step.gradient_scale *= clipping_.factor;
  }
  const std::vector<std::span<float>> history(history_.begin(), history_.end());
  const ArenaSlice slice{int64_t(begin_), int64_t(end_), weights, mine, history};
  if (update_.needs_norms()) {
    CFT_ASSIGN(const auto norms, gather(group_, update_.prepare(step, slice, *pool_)));
    step.trust = update_.trust_ratios(norms);
  }
  update_.apply(step, slice, *pool_);
  return all_gather_slices(group_, weights, slices_);
}

Status AllReduce::clip(std::span<const float> gradient, float limit) {
  const size_t learned = size_t(update_.learned());
  const size_t count = std::min(end_, std::max(learned, begin_)) - begin_;
  std::vector<double> blocks(norm_blocks(count));
  block_square_sums(gradient.first(count), blocks);
  CFT_ASSIGN(const std::vector<double> terms, gather(group_, blocks));
  const double square = tree_sum(terms);
  clipping_ = {static_cast<float>(std::sqrt(square)), clip_factor(square, limit)};
  return {};
}

Result<std::vector<std::vector<float>>> AllReduce::gather_history() {
  std::vector<std::vector<float>> arenas;
  for (const auto& mine : history_) {
    std::vector<float> arena(slices_.back());
    std::copy(mine.begin(), mine.end(), arena.begin() + ptrdiff_t(begin_));
    CFT_TRY(all_gather_slices(group_, arena, slices_));
    arenas.push_back(std::move(arena));
  }
  return arenas;
}

void AllReduce::set_history(const std::vector<std::vector<float>>& arenas) {
  for (size_t i = 0; i < history_.size(); ++i) {
    std::copy(arenas[i].begin() + ptrdiff_t(begin_), arenas[i].begin() + ptrdiff_t(end_),
              history_[i].begin());
  }
}

}  // namespace cafetiere
