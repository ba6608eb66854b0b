// SPDX-License-Identifier: Apache-2.0
#include "core/base/thread_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/base/guard.h"

namespace cafetiere {
namespace {

constexpr uint64_t kClosed = 0xffffffffu;  // no block has this number
constexpr auto kSpin = std::chrono::microseconds(50);

/// Tells the processor that this is a loop of waiting.
void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Spins for a short while, as the next operation of a step usually follows within microseconds.
template <class Done>
bool spin_until(const Done& done) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 64; ++i) {
      if (done()) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

/// The first block of a thread's share.
uint32_t first_block(uint32_t blocks, size_t share, size_t shares) {
  return uint32_t(uint64_t(blocks) * share / shares);
}

}  // namespace

ThreadPool::ThreadPool(int threads)
    : shares_(size_t(std::max(threads, 1))), workers_(shares_.size() - 1) {
  for (Share& share : shares_) share.next.store(kClosed);
  for (size_t i = 0; i < workers_.size(); ++i) {
    const uint32_t thread = uint32_t(i) + 1;
    const Status status = workers_[i].start("the pool", [this, thread] { worker(thread); }, {});
    if (status.ok()) continue;
    stop();
    throw StatusError(
        status.with_context(fmt::format("{} threads were requested, {} started", threads, i + 1)));
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  stop_.store(true);
  generation_.fetch_add(1);
  generation_.notify_all();
  for (GuardedThread& w : workers_) w.join();
}

/// Runs blocks, first of the thread's own share, then of the others'; returns how many. They are
/// counted as done only by finish(), so that the job cannot end before.
uint32_t ThreadPool::take_blocks(uint32_t thread) {
  uint32_t done = 0;
  for (size_t i = 0; i < shares_.size(); ++i) {
    const uint32_t share = uint32_t((thread + i) % shares_.size());
    while (take_block(share, &done)) {
    }
  }
  return done;
}

bool ThreadPool::take_block(uint32_t share, uint32_t* done) {
  std::atomic<uint64_t>& at = shares_[share].next;
  uint64_t next = at.load();
  const BlockFn fn = fn_.load();
  const void* arg = arg_.load();
  const uint32_t block = static_cast<uint32_t>(next);
  if (block >= first_block(blocks_.load(), share + 1, shares_.size())) return false;
  if (!at.compare_exchange_strong(next, next + 1)) return true;  // lost the race: look again
  try {
    fn(arg, static_cast<int>(block));
  } catch (...) {
    if (!failed_.exchange(true)) failure_ = std::current_exception();
  }
  ++*done;
  return true;
}

void ThreadPool::finish(uint32_t some) {
  if (some > 0 && done_.fetch_add(some) + some == blocks_.load()) done_.notify_one();
}

void ThreadPool::run_blocks(int blocks, BlockFn fn, const void* arg) {
  if (workers_.empty() || blocks <= 1) {
    for (int b = 0; b < blocks; ++b) fn(arg, b);
    return;
  }
  const uint64_t generation = ((shares_[0].next.load() >> 32) + 1) << 32;
  for (Share& share : shares_) share.next.store(generation | kClosed);
  fn_.store(fn);
  arg_.store(arg);
  blocks_.store(static_cast<uint32_t>(blocks));
  done_.store(0);
  for (size_t i = 0; i < shares_.size(); ++i) {
    shares_[i].next.store(generation | first_block(uint32_t(blocks), i, shares_.size()));
  }
  generation_.fetch_add(1);
  generation_.notify_all();
  finish(take_blocks(0));
  wait_for(static_cast<uint32_t>(blocks));
  // No sooner: the other threads use `arg` until they are done.
  if (failed_.exchange(false)) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadPool::wait_for(uint32_t blocks) {
  if (spin_until([&] { return done_.load() == blocks; })) return;
  for (uint32_t done = done_.load(); done != blocks; done = done_.load()) done_.wait(done);
}

void ThreadPool::worker(uint32_t thread) {
  uint32_t seen = 0;  // not the current value: the pool may have been closed before this thread ran
  while (true) {
    while (const uint32_t done = take_blocks(thread)) finish(done);
    if (!spin_until([&] { return generation_.load() != seen; })) generation_.wait(seen);
    seen = generation_.load();
    if (stop_.load()) return;
  }
}

}  // namespace cafetiere
