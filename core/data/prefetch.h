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

/// The batches that a trainer will request: the sub-steps [first, end) in steps of `passes`;
/// in each step the passes of the first shard of the range, then those of the next.
struct BatchSequence {
  ShardRange shards;
  int64_t first = 0;
  int64_t end = 0;
  int64_t passes = 1;
};

/// How many batches a Prefetch holds: 2, or up to 64 small ones, as waking a thread for each would take
/// longer than they do.
int batches_ahead(const Source& source);

/// Threads that fill up to `depth` batches of a source, or one each if they are more, in the order of a
/// sequence; the consumer's is one of them. Once they have, they sleep until half of many are used.
/// Several only for a source that is parallel(). One consumer at a time. The source is used by these
/// threads alone until this object is destroyed; it must outlive it.
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
  /// Waits for the batches that are being filled; does not fill others.
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// The next batch of the sequence. An error or exception of the source is returned at its batch
  /// and by every later call; kInternal after the end of the sequence.
  Result<Batch> next();
  /// The consumer has copied its batch, whose memory is filled again.
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
  /// A free slot with the place of the sequence's next batch; null when there is nothing more to do.
  Slot* take();
  void advance();
  Status fill(Slot& slot);

  Source* source_;
  BatchSequence sequence_;
  std::vector<Slot> slots_;
  size_t refill_ = 1;  // so many free slots wake the threads

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Slot*> free_;   // guarded by mutex_
  std::deque<Slot*> taken_;  // guarded by mutex_: in the order of the sequence, filled or not
  int64_t step_ = 0;         // guarded by mutex_: the next batch, as those below
  int shard_ = 0;
  int64_t sub_step_ = 0;
  bool stop_ = false;  // guarded by mutex_
  Status end_;         // guarded by mutex_: why a thread has ended before its time

  Slot* in_use_ = nullptr;  // the consumer's
  Status failed_;
  double wait_seconds_ = 0;
  std::deque<GuardedThread> threads_;  // last: they use everything above
};

}  // namespace cafetiere
