// SPDX-License-Identifier: Apache-2.0
#include "core/data/prefetch.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/guard.h"

namespace cafetiere {

int batches_ahead(const Source& source) {
  constexpr int64_t kLeast = 2, kMost = 64, kFloats = 16'384;
  int64_t floats = 1;
  for (const Shape& shape : source.top_shapes()) floats += shape.count();
  return int(std::clamp(kFloats / floats, kLeast, kMost));
}

Prefetch::Prefetch(Source* source, const BatchSequence& sequence, int depth, int threads)
    : source_(source),
      sequence_(sequence),
      step_(sequence.first),
      shard_(sequence.shards.begin),
      sub_step_(sequence.first) {
  if (!source_->parallel()) threads = 1;
  allocate(std::max({depth, threads, 1}));
  start(std::max(threads, 1));
}

Prefetch::~Prefetch() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (GuardedThread& thread : threads_) thread.join();
}

void Prefetch::allocate(int depth) {
  slots_.resize(static_cast<size_t>(depth));
  for (Slot& slot : slots_) {
    for (const Shape& shape : source_->top_shapes()) {
      slot.memory.emplace_back(static_cast<size_t>(shape.count()));
      slot.tops.push_back(slot.memory.back().data());
    }
    free_.push_back(&slot);
  }
  constexpr int kFew = 8;
  if (depth > kFew) refill_ = size_t(depth) / 2;
}

/// One thread is enough: failing to start more is not an error.
void Prefetch::start(int threads) {
  for (int i = 0; i < threads; ++i) {
    const Status started = threads_.emplace_back().start(
        "reading rows ahead", [this] { produce(); }, [this](const Status& why) { end(why); });
    if (started.ok()) continue;
    if (i == 0) end(started);
    return;
  }
}

void Prefetch::give_back() {
  const std::lock_guard lock(mutex_);
  free_used();
}

/// Requires the mutex.
void Prefetch::free_used() {
  if (!in_use_) return;
  free_.push_back(std::exchange(in_use_, nullptr));
  if (free_.size() >= refill_) changed_.notify_all();
}

Result<Prefetch::Batch> Prefetch::next() {
  if (!failed_.ok()) return failed_;
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  free_used();
  const auto at_end = [this] {
    return shard_ >= sequence_.shards.end || sub_step_ >= sequence_.end;
  };
  changed_.wait(lock,
                [&] { return !end_.ok() || (taken_.empty() ? at_end() : taken_.front()->filled); });
  wait_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (taken_.empty() || !taken_.front()->filled) {
    return failed_ = !end_.ok()
                         ? end_
                         : internal_error("a batch was requested after the end of the sequence");
  }
  in_use_ = taken_.front();
  taken_.pop_front();
  if (!in_use_->status.ok()) return failed_ = in_use_->status;
  return in_use_->batch;
}

void Prefetch::produce() {
  while (Slot* slot = take()) {
    slot->status = guard([&] { return fill(*slot); });
    std::lock_guard lock(mutex_);
    slot->filled = true;
    if (!slot->status.ok()) stop_ = true;
    changed_.notify_all();
  }
}

void Prefetch::end(const Status& why) {
  std::lock_guard lock(mutex_);
  end_ = why;
  changed_.notify_all();
}

Prefetch::Slot* Prefetch::take() {
  std::unique_lock lock(mutex_);
  if (free_.empty()) changed_.wait(lock, [this] { return stop_ || free_.size() >= refill_; });
  if (stop_ || shard_ >= sequence_.shards.end || sub_step_ >= sequence_.end) return nullptr;
  Slot* slot = free_.front();
  free_.pop_front();
  slot->batch = {shard_, sub_step_, 0, slot->tops};
  slot->filled = false;
  taken_.push_back(slot);
  advance();
  return slot;
}

/// Advances to the next batch of a step, else to the next shard, else to the next step.
void Prefetch::advance() {
  if (++sub_step_ < std::min(sequence_.end, step_ + sequence_.passes)) return;
  if (++shard_ == sequence_.shards.end) {
    shard_ = sequence_.shards.begin;
    step_ += sequence_.passes;
  }
  sub_step_ = step_;
}

Status Prefetch::fill(Slot& slot) {
  Batch& batch = slot.batch;
  batch.rows = source_->rows(batch.shard, batch.sub_step);
  return batch.rows > 0 ? source_->fill(batch.shard, batch.sub_step, slot.tops) : Status();
}

}  // namespace cafetiere
