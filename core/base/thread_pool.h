// SPDX-License-Identifier: Apache-2.0
// ThreadPool: runs the numbered blocks of one operation on a fixed set of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <vector>

#include "core/base/guarded_thread.h"

namespace cafetiere {

/// A pool of `threads` workers, the calling thread being one of them. The blocks of an operation
/// are fixed by its shapes; the pool only decides who runs a block, so that results never depend
/// on the number of threads. Each thread begins with a share of its own, the same run of blocks in
/// every operation, as what it wrote in the one before is in its own caches; who is done takes
/// blocks of the others.
class ThreadPool {
 public:
  /// `threads` >= 1 counts the caller. Throws a StatusError where one of them cannot start.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls fn(block) once for each block in [0, blocks); returns when all are done. What a block
  /// throws is thrown here then, the first of several. One caller at a time.
  template <class F>
  void run(int blocks, const F& fn) {
    run_blocks(
        blocks, [](const void* f, int block) { (*static_cast<const F*>(f))(block); }, &fn);
  }

 private:
  using BlockFn = void (*)(const void*, int);
  /// The blocks that one thread begins with, and others may end.
  struct alignas(64) Share {
    std::atomic<uint64_t> next;  // generation << 32 | next block
  };
  void run_blocks(int blocks, BlockFn fn, const void* arg);
  uint32_t take_blocks(uint32_t thread);
  bool take_block(uint32_t share, uint32_t* done);
  void finish(uint32_t some);
  void wait_for(uint32_t blocks);
  void worker(uint32_t thread);
  void stop();

  // The current job. Written only while all shares are closed, read before a block is claimed; a
  // claim that succeeds proves that what was read belongs to the same job.
  std::atomic<BlockFn> fn_{nullptr};
  std::atomic<const void*> arg_{nullptr};
  std::atomic<uint32_t> blocks_{0};

  std::vector<Share> shares_;                        // by thread; the caller's is the first
  alignas(64) std::atomic<uint32_t> done_{0};        // blocks finished in this generation
  alignas(64) std::atomic<uint32_t> generation_{0};  // what sleeping workers wait on
  std::atomic<bool> stop_{false};
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;  // of whoever set failed_, until all blocks are done
  std::vector<GuardedThread> workers_;
};

}  // namespace cafetiere
