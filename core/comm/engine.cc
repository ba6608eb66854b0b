// SPDX-License-Identifier: Apache-2.0
#include "core/comm/engine.h"

#include <algorithm>

#include "core/comm/check_exchange.h"

namespace cafetiere {

Engine::Engine(int rank, Endpoints endpoints, int wake, const std::atomic<bool>& closed,
               std::function<void(int)> heard)
    : rank_(rank),
      endpoints_(std::move(endpoints)),
      wake_(wake),
      closed_(closed),
      heard_(std::move(heard)) {}

template <class Fn>
void Engine::each(const Fn& fn) {
  for (const auto& endpoint : endpoints_) {
    if (endpoint) fn(*endpoint);
  }
}

void Engine::replace(int peer, std::unique_ptr<Endpoint> endpoint) {
  endpoints_[peer] = std::move(endpoint);
}

void Engine::lend(const std::shared_ptr<const SharedMemory>& memory) {
  each([&](Endpoint& e) { e.lend(memory); });
}

Status Engine::run(Schedule* schedule) {
  Status status = pump(schedule);
  if (!status.ok()) each([](Endpoint& e) { e.give_up(); });  // ends use of the caller's memory
  return status;
}

Status Engine::pump(Schedule* schedule) {
  const int rounds = schedule->rounds();
  int begun = 0, received = 0;  // rounds
  bool open = false;            // the receives of round `received` are posted
  sending_ = false;
  const Status cancelled(ErrorCode::kCancelled, "group closed");
  if (closed_.load(std::memory_order_acquire)) return cancelled;
  while (true) {
    // Read before the last attempt: a peer that has all it needs from this exchange may close the
    // group for another reason.
    const bool closed = closed_.load(std::memory_order_acquire);
    CFT_ASSIGN(bool moved, progress());
    if (open && !receiving_) {
      schedule->received(received++);
      for (const auto& e : endpoints_) {
        if (e) CFT_TRY(e->release());
      }
      open = false;
      moved = true;
    }
    bool starved = false;
    if (begun < rounds && !sending_) {
      CFT_ASSIGN(const bool ready, schedule->ready(begun));
      starved = !ready;
      if (ready) CFT_TRY(post_sends(schedule, begun++));
      moved |= ready;
    }
    if (!open && received < begun) {
      CFT_TRY(post_receives(schedule, received));
      open = moved = true;
    }
    if (received == rounds && !sending_) {
      CFT_ASSIGN(const bool all, settled());
      if (all) return {};
    }
    if (closed) return cancelled;
    if (moved) {
      spinner_.hit();
    } else if (!spinner_.again()) {
      wait(starved ? schedule->wake_fd() : -1);
      spinner_.slept();
    }
  }
}

Status Engine::post_sends(Schedule* schedule, int round) {
  sends_.clear();
  schedule->sends(round, &sends_);
  CFT_TRY(check_exchange(rank_, static_cast<int>(endpoints_.size()), sends_, {}));
  for (const Send& s : sends_) endpoints_[s.peer]->send(s.data, s.bytes);
  sending_ = !sends_.empty();
  return {};
}

Status Engine::post_receives(Schedule* schedule, int round) {
  receives_.clear();
  schedule->receives(round, &receives_);
  CFT_TRY(check_exchange(rank_, static_cast<int>(endpoints_.size()), {}, receives_));
  for (const Receive& r : receives_) endpoints_[r.peer]->receive(r.data, r.bytes, r.in_place);
  receiving_ = !receives_.empty();
  return {};
}

/// Moves what can be moved now; returns whether anything moved.
Result<bool> Engine::progress() {
  bool moved = false;
  sending_ = receiving_ = false;
  for (size_t peer = 0; peer < endpoints_.size(); ++peer) {
    Endpoint* const e = endpoints_[peer].get();
    if (!e || !e->pending()) continue;
    CFT_ASSIGN(const Endpoint::Progress done, e->progress());
    if (done.sent > 0) bytes_sent_.fetch_add(done.sent, std::memory_order_relaxed);
    if (done.received > 0) heard_(static_cast<int>(peer));
    moved |= done.any();
    sending_ |= e->sending();
    receiving_ |= e->receiving();
  }
  return moved;
}

/// Whether the peers have read everything, so that the caller may change what it sent.
Result<bool> Engine::settled() {
  for (const auto& e : endpoints_) {
    if (!e) continue;
    CFT_ASSIGN(const bool all, e->settled());
    if (!all) return false;
  }
  return true;
}

/// Sleeps until an endpoint has work, `schedule_wake` is readable (-1: none) or the group is
/// closed. The monitor guarantees that one of these happens, so no time-out is needed here.
void Engine::wait(int schedule_wake) {
  polls_.assign({{wake_, POLLIN, 0}, {schedule_wake, POLLIN, 0}});
  bool sleep = true;
  each([&](Endpoint& e) { sleep &= e.arm(&polls_); });
  if (sleep) poll(polls_.data(), polls_.size(), -1);
  each([](Endpoint& e) { e.disarm(); });
}

}  // namespace cafetiere
