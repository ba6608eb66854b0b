// SPDX-License-Identifier: Apache-2.0
#include "core/data/prefetch.h"

#include <algorithm>
#include <chrono>

namespace cafetiere {

Prefetch::Prefetch(Source* source, const BatchSequence& sequence, int depth)
    : source_(source), sequence_(sequence) {
  allocate(std::max(depth, 1) + 1);  // and the one that the consumer uses
  const Status started = thread_.start(
      "reading rows ahead", [this] { produce(); }, [this](const Status& why) { end(why); });
  if (!started.ok()) end(started);
}

Prefetch::~Prefetch() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
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
}

Result<Prefetch::Batch> Prefetch::next() {
  if (!failed_.ok()) return failed_;
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  if (in_use_) {
    free_.push_back(in_use_);
    in_use_ = nullptr;
    changed_.notify_all();
  }
  changed_.wait(lock, [this] { return !filled_.empty() || finished_; });
  wait_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (filled_.empty()) {
    return failed_ = !end_.ok()
                         ? end_
                         : internal_error("a batch was requested after the end of the sequence");
  }
  in_use_ = filled_.front();
  filled_.pop_front();
  if (!in_use_->status.ok()) return failed_ = in_use_->status;
  return in_use_->batch;
}

void Prefetch::produce() {
  for (int64_t step = sequence_.first; step < sequence_.end; step += sequence_.passes) {
    for (int shard = sequence_.shards.begin; shard < sequence_.shards.end; ++shard) {
      const int64_t end = std::min(sequence_.end, step + sequence_.passes);
      for (int64_t q = step; q < end; ++q) {
        if (!produce_one(shard, q)) return;
      }
    }
  }
  end({});
}

void Prefetch::end(const Status& why) {
  std::lock_guard lock(mutex_);
  finished_ = true;
  end_ = why;
  changed_.notify_all();
}

bool Prefetch::produce_one(int shard, int64_t sub_step) {
  Slot* slot = wait_for_free_slot();
  if (!slot) return false;
  fill(*slot, shard, sub_step);
  const bool good = slot->status.ok();
  std::lock_guard lock(mutex_);
  filled_.push_back(slot);
  changed_.notify_all();
  return good;
}

void Prefetch::fill(Slot& slot, int shard, int64_t sub_step) {
  slot.batch = {shard, sub_step, source_->rows(shard, sub_step), slot.tops};
  slot.status = slot.batch.rows > 0 ? source_->fill(shard, sub_step, slot.tops) : Status();
}

Prefetch::Slot* Prefetch::wait_for_free_slot() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stop_ || !free_.empty(); });
  if (stop_) return nullptr;
  Slot* slot = free_.front();
  free_.pop_front();
  return slot;
}

}  // namespace cafetiere
