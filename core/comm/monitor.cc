// SPDX-License-Identifier: Apache-2.0
#include "core/comm/monitor.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace cafetiere {
namespace {

constexpr auto kMaxInterval = std::chrono::nanoseconds(std::chrono::seconds(1));

}  // namespace

Monitor::Monitor(int rank, std::vector<PeerLink>& links, int timeout_ms, int first_ms,
                 OnFailure on_failure)
    : rank_(rank),
      links_(links),
      timeout_(std::chrono::milliseconds(timeout_ms)),
      interval_(std::min(timeout_ / 6, kMaxInterval)),
      on_failure_(std::move(on_failure)),
      heard_(std::make_unique<std::atomic<Ticks>[]>(links.size())),
      readers_(links.size()),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  const std::chrono::nanoseconds first = std::chrono::milliseconds(first_ms);
  for (size_t peer = 0; peer < links.size(); ++peer) heard_[peer] = now() + first.count();
}

Status Monitor::start() {
  return thread_.start(
      "the heartbeats of a group", [this] { loop(); }, on_failure_);
}

Monitor::~Monitor() {
  stop_.store(true);
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

Monitor::Ticks Monitor::now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

void Monitor::loop() {
  std::vector<pollfd> polls;
  for (const PeerLink& link : links_) polls.push_back({link.control.fd(), POLLIN, 0});
  polls.push_back({wake_.get(), POLLIN, 0});
  Ticks next_beat = 0;
  while (!stop_.load()) {
    Status status;
    // Read before judging: after this process itself was stopped for a while, the peers' heartbeats
    // are waiting in the socket.
    for (size_t peer = 0; peer < links_.size() && status.ok(); ++peer) {
      if (polls[peer].fd >= 0) status = listen_to(static_cast<int>(peer));
      if (readers_[peer].closed) polls[peer].fd = -1;
    }
    if (status.ok()) status = judge_silence();
    if (!status.ok()) return on_failure_(status);
    if (now() >= next_beat) {
      beat();
      next_beat = now() + interval_.count();
    }
    poll(polls.data(), polls.size(), wait_ms(next_beat));
  }
}

/// Time until the next heartbeat or a peer's time-out.
int Monitor::wait_ms(Ticks next_beat) const {
  Ticks next = next_beat;
  for (size_t peer = 0; peer < links_.size(); ++peer) {
    if (!links_[peer].control.valid() || readers_[peer].closed) continue;
    next = std::min(next, heard_[peer].load(std::memory_order_relaxed) + timeout_.count());
  }
  const std::chrono::nanoseconds left(std::max<Ticks>(0, next - now()));
  return static_cast<int>(left / std::chrono::milliseconds(1)) + 1;
}

Status Monitor::listen_to(int peer) {
  while (!readers_[peer].closed) {
    char chunk[512];
    const ssize_t n = receive(peer, chunk);
    if (n < 0 && would_block()) return {};
    if (n <= 0) return connection_lost(name(peer), n);
    heard(peer);
    readers_[peer].bytes.insert(readers_[peer].bytes.end(), chunk, chunk + n);
    CFT_TRY(take_pulses(peer));
  }
  return {};
}

ssize_t Monitor::receive(int peer, std::span<char> bytes) {
  std::lock_guard lock(stream_mutex_);
  return links_[peer].control.receive(std::as_writable_bytes(bytes));
}

Status Monitor::take_pulses(int peer) {
  while (true) {
    const Result<std::optional<Pulse>> pulse = take_pulse(&readers_[peer].bytes);
    if (!pulse.ok()) {
      return {pulse.status().code(), fmt::format("{} {}", name(peer), pulse.status().message())};
    }
    if (!*pulse) return {};
    if ((*pulse)->kind == Pulse::kAbort) {
      return unavailable(fmt::format("{} gave up: {}", name(peer), (*pulse)->text));
    }
    if ((*pulse)->kind == Pulse::kBye) readers_[peer].closed = true;
  }
}

void Monitor::beat() {
  for (size_t peer = 0; peer < links_.size(); ++peer) {
    if (!readers_[peer].closed) send(peer, {Pulse::kBeat});
  }
}

Status Monitor::judge_silence() const {
  for (size_t peer = 0; peer < links_.size(); ++peer) {
    if (!links_[peer].control.valid() || readers_[peer].closed) continue;
    const std::chrono::nanoseconds silence(now() - heard_[peer].load(std::memory_order_relaxed));
    if (silence < timeout_) continue;
    return timeout_error(
        fmt::format("{} has been silent for {:.1f} s: it is stopped, swapped out or disconnected",
                    name(static_cast<int>(peer)), std::chrono::duration<double>(silence).count()));
  }
  return {};
}

void Monitor::goodbye(const std::string& reason) {
  for (size_t peer = 0; peer < links_.size(); ++peer) {
    send(peer, {reason.empty() ? Pulse::kBye : Pulse::kAbort, reason});
  }
}

void Monitor::send(size_t peer, const Pulse& pulse) {
  std::lock_guard lock(stream_mutex_);
  send_pulse(pulse, &links_[peer].control);
}

std::string Monitor::name(int peer) const {
  return fmt::format("rank {} at {}", peer, links_[peer].address);
}

}  // namespace cafetiere
