// SPDX-License-Identifier: Apache-2.0
#include "core/base/thread_pool.h"

#include <chrono>

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

}  // namespace

ThreadPool::ThreadPool(int threads) : next_(kClosed) {
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { worker(); });
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  generation_.fetch_add(1);
  generation_.notify_all();
  for (auto& w : workers_) w.join();
}

bool ThreadPool::take_block() {
  uint64_t next = next_.load();
  const BlockFn fn = fn_.load();
  const void* arg = arg_.load();
  const uint32_t blocks = blocks_.load();
  const uint32_t block = static_cast<uint32_t>(next);
  if (block >= blocks) return false;
  if (!next_.compare_exchange_strong(next, next + 1)) return true;  // lost the race: look again
  fn(arg, static_cast<int>(block));
  if (done_.fetch_add(1) + 1 == blocks) done_.notify_one();
  return true;
}

void ThreadPool::run_blocks(int blocks, BlockFn fn, const void* arg) {
  if (workers_.empty() || blocks <= 1) {
    for (int b = 0; b < blocks; ++b) fn(arg, b);
    return;
  }
  const uint64_t generation = (next_.load() >> 32) + 1;
  next_.store(generation << 32 | kClosed);
  fn_.store(fn);
  arg_.store(arg);
  blocks_.store(static_cast<uint32_t>(blocks));
  done_.store(0);
  next_.store(generation << 32);
  generation_.fetch_add(1);
  generation_.notify_all();
  while (take_block()) {
  }
  const uint32_t all = static_cast<uint32_t>(blocks);
  if (spin_until([&] { return done_.load() == all; })) return;
  for (uint32_t done = done_.load(); done != all; done = done_.load()) done_.wait(done);
}

void ThreadPool::worker() {
  uint32_t seen = 0;  // not the current value: the pool may have been closed before this thread ran
  while (true) {
    while (take_block()) {
    }
    if (!spin_until([&] { return generation_.load() != seen; })) generation_.wait(seen);
    seen = generation_.load();
    if (stop_.load()) return;
  }
}

}  // namespace cafetiere
