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

/// A thread that fills up to `depth` batches of a source ahead, in the order of a sequence. One
/// consumer at a time. The source is used by that thread alone until this object is destroyed; it
/// must outlive it.
class Prefetch {
 public:
  /// A filled batch; valid until the next call of next().
  struct Batch {
    int shard = 0;
    int64_t sub_step = 0;
    int64_t rows = 0;
    std::span<float* const> tops;  ///< row-major, as Source::fill() writes them
  };

  Prefetch(Source* source, const BatchSequence& sequence, int depth = 2);
  /// Waits for the batch that is being filled; does not fill another.
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// The next batch of the sequence. An error or exception of the source is returned at its batch
  /// and by every later call; kInternal after the end of the sequence.
  Result<Batch> next();

  /// Seconds that next() has waited for data so far.
  double wait_seconds() const { return wait_seconds_; }

 private:
  struct Slot {
    std::vector<std::vector<float>> memory;
    std::vector<float*> tops;
    Batch batch;
    Status status;
  };
  void allocate(int depth);
  void produce();
  void end(const Status& why);
  /// Fills and hands over one batch; false when there is nothing more to do.
  bool produce_one(int shard, int64_t sub_step);
  void fill(Slot& slot, int shard, int64_t sub_step);
  Slot* wait_for_free_slot();

  Source* source_;
  BatchSequence sequence_;
  std::vector<Slot> slots_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Slot*> free_;    // guarded by mutex_
  std::deque<Slot*> filled_;  // guarded by mutex_
  bool stop_ = false;         // guarded by mutex_
  bool finished_ = false;     // guarded by mutex_: nothing will be added to filled_
  Status end_;                // guarded by mutex_: why it is finished, if not at the end

  Slot* in_use_ = nullptr;  // the consumer's
  Status failed_;
  double wait_seconds_ = 0;
  GuardedThread thread_;  // last: it uses everything above
};

}  // namespace cafetiere
