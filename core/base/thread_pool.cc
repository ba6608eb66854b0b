// SPDX-License-Identifier: Apache-2.0
#include "core/base/thread_pool.h"

#include <fmt/format.h>

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

}  // namespace

ThreadPool::ThreadPool(int threads)
    : next_(kClosed), workers_(size_t(threads > 1 ? threads - 1 : 0)) {
  for (size_t i = 0; i < workers_.size(); ++i) {
    const Status status = workers_[i].start("the pool", [this] { worker(); }, {});
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

bool ThreadPool::take_block() {
  uint64_t next = next_.load();
  const BlockFn fn = fn_.load();
  const void* arg = arg_.load();
  const uint32_t blocks = blocks_.load();
  const uint32_t block = static_cast<uint32_t>(next);
  if (block >= blocks) return false;
  if (!next_.compare_exchange_strong(next, next + 1)) return true;  // lost the race: look again
  try {
    fn(arg, static_cast<int>(block));
  } catch (...) {
    if (!failed_.exchange(true)) failure_ = std::current_exception();
  }
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
  wait_for(static_cast<uint32_t>(blocks));
  // No sooner: the other threads use `arg` until they are done.
  if (failed_.exchange(false)) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadPool::wait_for(uint32_t blocks) {
  if (spin_until([&] { return done_.load() == blocks; })) return;
  for (uint32_t done = done_.load(); done != blocks; done = done_.load()) done_.wait(done);
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
