// SPDX-License-Identifier: Apache-2.0
// GradientExchange: sums the gradients of all shards bucket by bucket, while backward still
// computes the rest.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <vector>

#include "core/base/arena_block.h"
#include "core/base/guarded_thread.h"
#include "core/comm/collectives.h"
#include "core/comm/socket.h"
#include "core/observe/trace.h"
#include "core/sync/exchange.h"
#include "core/sync/sync.h"

namespace cafetiere {

/// The arena is split into buckets, and each bucket into one slice per rank. Backward makes
/// gradients final from the arena's end to its front; a thread sends each bucket once it is final,
/// in this order on all ranks and without waiting for the peers, so that the latency is paid once
/// and not once per bucket. Every element is summed in the shard tree, whatever the buckets are.
class GradientExchange : private ReadySource {
 public:
  /// Floats per bucket: an eighth of the arena, so that most of it is sent before backward ends,
  /// but enough that latency does not matter, and few enough that a large net has many buckets.
  static constexpr size_t bucket_floats(size_t arena) {
    constexpr size_t kLeast = size_t{1} << 16, kMost = size_t{1} << 20;
    const size_t eighth = (arena / 8 + kArenaBlock - 1) / kArenaBlock * kArenaBlock;
    return std::clamp(eighth, kLeast, kMost);
  }

  GradientExchange(const SyncContext& context, Exchange exchange);
  ~GradientExchange() override;
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;

  ShardRange shards() const { return buckets_.front().sum.range(); }

  /// Floats [begin, end) of the arena.
  struct Slice {
    size_t begin, end;
  };
  /// The slices of `floats` whose sums one of `ranks` ranks gets, one of each bucket, in order.
  static std::vector<Slice> slices(size_t floats, int rank, int ranks);

  /// Adds the gradient of the next of the rank's shards, which is not the last.
  Status add(std::span<const float> gradient);
  /// The last shard's `gradient` is final from float `from` on, and stays valid until finish().
  /// Does not wait.
  void final_from(std::span<float> gradient, size_t from);
  /// Waits until all of the last shard's gradient has been added: the rank's slices of `gradient`
  /// are sums then, the rest is undefined.
  Status finish(std::span<float> gradient);

  /// Gathers all slices on all ranks; `rounded`: in the wire's format.
  Status gather(std::span<float> arena, bool rounded = false);

 private:
  struct Bucket {
    size_t begin, end;
    TreeSum sum;
    std::vector<size_t> slices;  // of each rank, relative to `begin`
  };
  Status reduce();
  Result<bool> ready(size_t i) override;
  int wake_fd() const override { return wake_.get(); }
  void work();
  void end_step(Status status);

  const SyncContext context_;
  const Exchange exchange_;
  std::vector<Bucket> buckets_;
  std::optional<Trace::Span> span_;  // of the bucket that was sent last
  Fd wake_;                          // readable when more may be final

  std::mutex mutex_;
  std::condition_variable changed_;
  std::span<float> gradient_;  // guarded by mutex_, as are those below
  size_t final_from_ = 0;      // what may be exchanged
  size_t awaited_ = 0;         // the exchange waits until this much is final
  bool begun_ = false;         // the exchange of this round's gradient
  bool under_way_ = false;     // that exchange has not ended
  bool stop_ = false;
  Status status_;
  GuardedThread
      thread_;  // where there is somebody to exchange with; last: it uses all of the above
};

}  // namespace cafetiere
