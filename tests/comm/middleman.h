// SPDX-License-Identifier: Apache-2.0
// A man in the middle, for tests of what he can read and change.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/comm/socket.h"

namespace cafetiere::test {

/// Stands before one address, passes on what comes from both sides and remembers it.
class Middleman {
 public:
  /// The first bytes of all wait for `delay`.
  explicit Middleman(const std::string& target, std::chrono::milliseconds delay = {})
      : target_(*parse_address(target)),
        delay_(delay),
        listener_(std::move(*listen_on("127.0.0.1"))),
        stop_(eventfd(0, EFD_CLOEXEC)),
        thread_([this] { work(); }) {}

  ~Middleman() {
    eventfd_write(stop_.get(), 1);
    thread_.join();
  }

  std::string address() const { return local_address(listener_.get()).text(); }

  bool has_seen(const std::string& text) const {
    std::lock_guard lock(mutex_);
    return seen_.find(text) != std::string::npos;
  }

  /// Changes one bit in the middle of the next piece that has at least so many bytes; or in its
  /// first byte, where small messages on a quiet connection begin.
  void spoil(size_t bytes) { spoil_.store(bytes); }
  void spoil_first_byte() {
    in_front_.store(true);
    spoil(1);
  }
  bool has_spoilt() const { return spoil_.load() == kNever; }

 private:
  static constexpr size_t kNever = SIZE_MAX;

  void work() {
    while (true) {
      std::vector<pollfd> polls{{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      for (const Fd& end : ends_) polls.push_back({end.get(), POLLIN, 0});
      poll(polls.data(), polls.size(), -1);
      if (polls[0].revents != 0) return;
      for (size_t i = 0; i + 2 < polls.size(); ++i) {
        if (polls[i + 2].revents != 0) pass_on(ends_[i], ends_[i ^ 1]);
      }
      if (polls[1].revents != 0) join();
    }
  }

  /// The two ends of a connection are neighbours in ends_.
  void join() {
    ends_.emplace_back(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK));
    ends_.push_back(std::move(*start_connect(target_)));
  }

  void pass_on(Fd& from, Fd& to) {
    std::string bytes(64 << 10, '\0');
    const ssize_t n = recv(from.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n < 0 && would_block()) return;
    bytes.resize(n > 0 ? size_t(n) : 0);
    std::this_thread::sleep_for(std::exchange(delay_, {}));
    {
      std::lock_guard lock(mutex_);
      seen_ += bytes;
    }
    if (bytes.size() >= spoil_.load() && !bytes.empty()) {
      bytes[in_front_.load() ? 0 : bytes.size() / 2] ^= 1;
      spoil_.store(kNever);
    }
    if (n <= 0 || !send_all(to.get(), bytes)) from = Fd(), to = Fd();
  }

  static bool send_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n < 0 && !would_block()) return false;
      bytes.remove_prefix(n > 0 ? size_t(n) : 0);
      pollfd room{fd, POLLOUT, 0};
      if (!bytes.empty()) poll(&room, 1, -1);
    }
    return true;
  }

  const SocketAddress target_;
  std::chrono::milliseconds delay_;  // of the thread alone
  const Fd listener_, stop_;
  std::vector<Fd> ends_;
  mutable std::mutex mutex_;
  std::string seen_;
  std::atomic<size_t> spoil_{kNever};
  std::atomic<bool> in_front_{false};
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace cafetiere::test
