// SPDX-License-Identifier: Apache-2.0
#include "core/sync/gradient_exchange.h"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/base/guard.h"

namespace cafetiere {
namespace {

std::vector<GradientExchange::Slice> bucket_bounds(size_t floats, int ranks) {
  const size_t arena = std::max<size_t>(floats, 1);
  const size_t bucket = ranks > 1 ? GradientExchange::bucket_floats(floats) : arena;
  std::vector<GradientExchange::Slice> bounds;
  for (size_t begin = 0; begin < arena; begin += bucket) {
    bounds.push_back({begin, std::min(floats, begin + bucket)});
  }
  return bounds;
}

}  // namespace

GradientExchange::GradientExchange(const SyncContext& context, Exchange exchange)
    : context_(context), exchange_(exchange) {
  const int rank = rank_of(context.group), ranks = size_of(context.group);
  // The exchanging thread must not use the pool, which backward uses.
  ThreadPool* const pool = ranks > 1 ? nullptr : context.pool;
  const ShardRange mine = shards_of_rank(rank, ranks, context.shards);
  for (const auto [begin, end] : bucket_bounds(size_t(context.floats), ranks)) {
    buckets_.push_back({begin, end, TreeSum(mine, context.shards, end - begin, pool),
                        even_slices(end - begin, ranks)});
  }
  if (ranks <= 1) return;
  wake_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_.valid()) {
    status_ = io_error("the exchange of gradients: no eventfd: " + errno_text(errno));
    return;
  }
  status_ = thread_.start(
      "the exchange of gradients", [this] { work(); },
      [this](const Status& why) { end_step(why); });
}

GradientExchange::~GradientExchange() {
  if (!thread_.started()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

std::vector<GradientExchange::Slice> GradientExchange::slices(size_t floats, int rank, int ranks) {
  std::vector<Slice> slices;
  for (const auto [begin, end] : bucket_bounds(floats, ranks)) {
    const std::vector<size_t> bounds = even_slices(end - begin, ranks);
    slices.push_back({begin + bounds[size_t(rank)], begin + bounds[size_t(rank) + 1]});
  }
  return slices;
}

Status GradientExchange::add(std::span<const float> gradient) {
  for (Bucket& b : buckets_) CFT_TRY(b.sum.add(gradient.subspan(b.begin, b.end - b.begin)));
  return {};
}

/// The sums over all ranks, the last bucket first.
Status GradientExchange::reduce() {
  const size_t rank = size_t(rank_of(context_.group));
  std::vector<Reduction> reductions;
  for (auto b = buckets_.rbegin(); b != buckets_.rend(); ++b) {
    const std::span<float> part = gradient_.subspan(b->begin, b->end - b->begin);
    const size_t size = b->slices[rank + 1] - b->slices[rank];
    reductions.push_back({b->sum, b->slices, part.subspan(b->slices[rank], size)});
  }
  Status status = exchange_.reduce(context_.group, reductions, this);
  span_.reset();
  for (Bucket& b : buckets_) b.sum.reset();
  return status;
}

Result<bool> GradientExchange::ready(size_t i) {
  Bucket& b = buckets_[buckets_.size() - 1 - i];
  {
    const std::lock_guard lock(mutex_);
    eventfd_t woken = 0;
    (void)eventfd_read(wake_.get(), &woken);
    if (stop_) return Status(ErrorCode::kCancelled, "the step was given up");
    const bool is_final = b.begin >= final_from_;
    awaited_ = is_final ? 0 : b.begin;
    if (!is_final) return false;
  }
  constexpr fmt::format_string<size_t&, size_t&> kName = "gradients {}-{}";
  span_.emplace(context_.trace, "exchange", kName, b.begin, b.end);
  CFT_TRY(b.sum.add(gradient_.subspan(b.begin, b.end - b.begin)));
  return true;
}

void GradientExchange::final_from(std::span<float> gradient, size_t from) {
  if (!thread_.started()) return;
  const std::lock_guard lock(mutex_);
  final_from_ = from;
  if (!std::exchange(begun_, true)) {
    gradient_ = gradient;
    under_way_ = true;
    changed_.notify_all();
  }
  if (from <= awaited_) eventfd_write(wake_.get(), 1);  // not per layer: a context switch
}

Status GradientExchange::finish(std::span<float> gradient) {
  if (!thread_.started()) {
    CFT_TRY(status_);
    gradient_ = gradient;
    return reduce();
  }
  final_from(gradient, 0);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !under_way_; });
  begun_ = false;
  return status_;
}

void GradientExchange::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || under_way_; });
    if (stop_) return;
    lock.unlock();
    end_step(guard([this] { return reduce(); }));
    lock.lock();
  }
}

void GradientExchange::end_step(Status status) {
  const std::lock_guard lock(mutex_);
  status_ = std::move(status);
  under_way_ = false;
  changed_.notify_all();
}

Status GradientExchange::gather(std::span<float> arena, bool rounded) {
  const Trace::Span span(context_.trace, "step", "gather");
  std::vector<AllGatherOp> gathers;
  for (const Bucket& b : buckets_) {
    gathers.push_back({arena.subspan(b.begin, b.end - b.begin), b.slices});
  }
  return exchange_.gather(context_.group, gathers, rounded);
}

}  // namespace cafetiere
