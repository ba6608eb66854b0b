#include "core/sync/gradient_exchange.h"

#include <algorithm>
#include <utility>

#include "core/observe/trace.h"

namespace cafetiere {

GradientExchange::GradientExchange(const SyncContext& context, Exchange exchange)
    : context_(context), exchange_(exchange) {
  const int rank = rank_of(context.group), ranks = size_of(context.group);
  const size_t floats = size_t(context.floats);
  const size_t bucket = ranks > 1 ? bucket_floats(floats) : std::max<size_t>(floats, 1);
  // The exchanging thread must not use the pool, which works on backward.
  ThreadPool* const pool = ranks > 1 ? nullptr : context.pool;
  const ShardRange mine = shards_of_rank(rank, ranks, context.shards);
  for (size_t begin = 0; begin < std::max<size_t>(floats, 1); begin += bucket) {
    const size_t end = std::min(floats, begin + bucket);
    buckets_.push_back({begin, end, TreeSum(mine, context.shards, end - begin, pool),
                        even_slices(end - begin, ranks)});
  }
  done_ = buckets_.size();
  if (ranks > 1) thread_ = std::thread([this] { work(); });
}

GradientExchange::~GradientExchange() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::vector<GradientExchange::Slice> GradientExchange::slices() const {
  const size_t rank = size_t(rank_of(context_.group));
  std::vector<Slice> slices;
  for (const Bucket& b : buckets_) {
    slices.push_back({b.begin + b.slices[rank], b.begin + b.slices[rank + 1]});
  }
  return slices;
}

Status GradientExchange::add(std::span<const float> gradient) {
  for (Bucket& b : buckets_) CFT_TRY(b.sum.add(gradient.subspan(b.begin, b.end - b.begin)));
  return {};
}

/// The last shard's part of some buckets, and the sums over all ranks.
Status GradientExchange::reduce(std::span<Bucket> buckets, std::span<float> gradient) {
  const Trace::Span span(context_.trace, "exchange", "gradients {}-{}", buckets.front().begin,
                         buckets.back().end);
  const size_t rank = size_t(rank_of(context_.group));
  std::vector<Reduction> reductions;
  for (auto b = buckets.rbegin(); b != buckets.rend(); ++b) {
    const std::span<float> part = gradient.subspan(b->begin, b->end - b->begin);
    CFT_TRY(b->sum.add(part));
    const size_t size = b->slices[rank + 1] - b->slices[rank];
    reductions.push_back({b->sum, b->slices, part.subspan(b->slices[rank], size)});
  }
  CFT_TRY(exchange_.reduce(context_.group, reductions));
  for (Bucket& b : buckets) b.sum.reset();
  return {};
}

void GradientExchange::final_from(std::span<float> gradient, size_t from) {
  if (!thread_.joinable()) return;
  const std::lock_guard lock(mutex_);
  if (!std::exchange(begun_, true)) done_ = 0;
  gradient_ = gradient;
  final_from_ = from;
  changed_.notify_all();
}

Status GradientExchange::finish(std::span<float> gradient) {
  if (!thread_.joinable()) return reduce(buckets_, gradient);
  final_from(gradient, 0);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return done_ == buckets_.size() || !status_.ok(); });
  begun_ = false;
  gradient_ = {};
  return status_;
}

/// Whatever is final goes on its way together: over a long way one exchange of many buckets takes no
/// longer than one of a single bucket.
void GradientExchange::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto ready = [this]() -> std::span<Bucket> {
      if (gradient_.empty() || !status_.ok()) return {};
      const auto end = buckets_.end() - ptrdiff_t(done_);
      const auto begin = std::find_if(buckets_.begin(), end,
                                      [this](const Bucket& b) { return b.begin >= final_from_; });
      return {begin, end};
    };
    std::span<Bucket> buckets;
    changed_.wait(lock, [&] {
      buckets = ready();
      return stop_ || !buckets.empty();
    });
    if (stop_) return;
    const std::span<float> gradient = gradient_;
    lock.unlock();
    Status status = reduce(buckets, gradient);
    lock.lock();
    status_ = std::move(status);
    done_ += buckets.size();
    changed_.notify_all();
  }
}

Status GradientExchange::gather(std::span<float> arena, bool rounded) {
  const Trace::Span span(context_.trace, "step", "gather");
  std::vector<Gathering> gatherings;
  for (const Bucket& b : buckets_) {
    gatherings.push_back({arena.subspan(b.begin, b.end - b.begin), b.slices});
  }
  return exchange_.gather(context_.group, gatherings, rounded);
}

}  // namespace cafetiere
