// SPDX-License-Identifier: Apache-2.0
// Prefetch: fills the next batches while the net computes the current one.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "core/base/guarded_thread.h"
#include "core/base/status.h"
#include "core/data/shard_store.h"
#include "core/data/source.h"

namespace cafetiere {

/// The batches that a trainer will request: sub-steps [first, end), grouped in steps of `passes`;
/// in each step, first the passes of the first shard of the range, then those of the next one.
struct BatchSequence {
  ShardRange shards;
  int64_t first = 0;
  int64_t end = 0;
  int64_t passes = 1;
};

/// The number of batches that a Prefetch holds: 2, or up to 64 small ones, for which waking a
/// thread each time would take longer than filling them.
int batches_ahead(const Source& source);

/// Threads that fill up to `depth` batches of a source (at least one per thread), in sequence
/// order, including the one that the consumer holds. When all are filled, threads sleep until one
/// is free or, if there are many, half of them. Several threads are used only if the source is
/// parallel(). There may be one consumer at a time. Only these threads use the source until this
/// object is destroyed; the source must outlive it.
class Prefetch {
 public:
  /// A filled batch; valid until give_back() or the next call of next().
  struct Batch {
    int shard = 0;
    int64_t sub_step = 0;
    int64_t rows = 0;
    std::span<float* const> tops;  ///< row-major, as Source::fill() writes them
  };

  Prefetch(Source* source, const BatchSequence& sequence, int depth = 2, int threads = 1);
  /// Waits for batches being filled; does not start others.
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// The next batch of the sequence. An error or exception of the source is returned at its batch
  /// and by every later call; kInternal after the end of the sequence.
  Result<Batch> next();
  /// Releases the consumer's batch, whose memory is then refilled.
  void give_back();

  /// Seconds that next() has waited for data so far.
  double wait_seconds() const { return wait_seconds_; }

 private:
  struct Slot {
    std::vector<std::vector<float>> memory;
    std::vector<float*> tops;
    Batch batch;
    Status status;
    bool filled = false;  // guarded by mutex_
  };
  void allocate(int depth);
  void start(int threads);
  void free_used();
  void produce();
  void end(const Status& why);
  /// A free slot assigned to the next batch of the sequence; null if there is nothing left to do.
  Slot* take();
  void advance();
  Status fill(Slot& slot);

  Source* source_;
  BatchSequence sequence_;
  std::vector<Slot> slots_;
  size_t refill_ = 1;  // number of free slots at which threads wake up

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Slot*> free_;   // guarded by mutex_
  std::deque<Slot*> taken_;  // guarded by mutex_: in sequence order, filled or not
  int64_t step_ = 0;         // guarded by mutex_: the next batch, like those below
  int shard_ = 0;
  int64_t sub_step_ = 0;
  bool stop_ = false;  // guarded by mutex_
  Status end_;         // guarded by mutex_: why a thread ended early

  Slot* in_use_ = nullptr;  // held by the consumer
  Status failed_;
  double wait_seconds_ = 0;
  std::deque<GuardedThread> threads_;  // last, since they use everything above
};

}  // namespace cafetiere
