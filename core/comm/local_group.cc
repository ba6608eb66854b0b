// SPDX-License-Identifier: Apache-2.0
// LocalGroup: ranks as threads of one process. The receiver copies straight from the sender's
// memory; a sender returns when all its messages are taken. There is no time-out, as a thread
// cannot die without its process.
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>

#include "core/comm/check_exchange.h"
#include "core/comm/group.h"

namespace cafetiere {
namespace {

/// A posted Send. The sender owns it and waits until the receiver is done with it.
struct Parcel {
  enum class State { kPosted, kCopying, kTaken };
  const void* data = nullptr;
  size_t bytes = 0;
  State state = State::kPosted;
};

/// What the ranks of one group share. Everything but the sizes is guarded by the mutex.
struct Hub {
  explicit Hub(int n)
      : size(n), wake(n), left(n, false), queues(size_t(n) * n), ends(size_t(n) * n) {}

  std::deque<Parcel*>& queue(int from, int to) { return queues[size_t(from) * size + to]; }

  /// Ends of connections to `to` that `from` has not taken yet.
  std::deque<Fd>& waiting_ends(int from, int to) { return ends[size_t(from) * size + to]; }

  void close(int rank, Status why) {
    if (closer < 0) {
      closer = rank;
      reason = std::move(why);
    }
    for (auto& w : wake) w.notify_all();
  }

  /// The error that `rank` gets from a closed group.
  Status verdict(int rank) const {
    if (rank == closer) return reason;
    return unavailable(fmt::format("rank {} gave up: {}", closer, reason.message()));
  }

  const int size;
  std::mutex mutex;
  std::vector<std::condition_variable> wake;  // one a rank
  std::vector<bool> left;
  std::vector<std::deque<Parcel*>> queues;
  std::vector<std::deque<Fd>> ends;
  int closer = -1;  // the rank that closed the group, if any
  Status reason;
};

class LocalGroup : public Group {
 public:
  LocalGroup(std::shared_ptr<Hub> hub, int rank) : hub_(std::move(hub)), rank_(rank) {}

  ~LocalGroup() override {
    std::lock_guard lock(hub_->mutex);
    hub_->left[rank_] = true;
    for (int peer = 0; peer < size(); ++peer) hub_->waiting_ends(rank_, peer).clear();
    for (auto& w : hub_->wake) w.notify_all();
  }

  int rank() const override { return rank_; }
  int size() const override { return hub_->size; }

  Status exchange(std::span<const Send> sends, std::span<const Receive> receives) override {
    const auto start = std::chrono::steady_clock::now();
    std::unique_lock lock(hub_->mutex);
    Status status =
        hub_->closer >= 0 ? hub_->verdict(rank_) : check_exchange(rank_, size(), sends, receives);
    if (status.ok()) {
      post(sends);
      for (const Receive& r : receives) {
        status = receive(lock, r);
        if (!status.ok()) break;
      }
      Status sent = finish_sends(lock, sends, status.ok());
      if (status.ok()) status = sent;
    }
    if (!status.ok()) {
      hub_->close(rank_, status);
      return hub_->verdict(rank_);
    }
    counters_.seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return {};
  }

  Result<PeerLinks> open_links() override {
    PeerLinks links{.streams = {}, .cancelled = cancelled_.get(), .timeout_ms = 0};
    if (!cancelled_.valid()) return io_error("group: cannot make an eventfd");
    std::lock_guard lock(hub_->mutex);
    for (int peer = 0; peer < size(); ++peer) {
      links.streams.emplace_back();
      if (peer == rank_) continue;
      std::deque<Fd>& mine = hub_->waiting_ends(rank_, peer);
      if (mine.empty()) CFT_TRY(connect_to(peer));
      links.streams.back() = Stream(std::move(mine.front()));
      mine.pop_front();
    }
    return links;
  }

  void cancel() override {
    eventfd_write(cancelled_.get(), 1);
    std::lock_guard lock(hub_->mutex);
    hub_->close(rank_, {ErrorCode::kCancelled, fmt::format("rank {} was cancelled", rank_)});
  }

  Counters counters() const override {
    std::lock_guard lock(hub_->mutex);
    return counters_;
  }

 private:
  /// Makes a connection and leaves each side its end; that of a rank that left is closed.
  Status connect_to(int peer) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
      return io_error("group: cannot make a pair of sockets: " + errno_text(errno));
    }
    hub_->waiting_ends(rank_, peer).emplace_back(ends[0]);
    Fd theirs(ends[1]);
    if (!hub_->left[peer]) hub_->waiting_ends(peer, rank_).push_back(std::move(theirs));
    return {};
  }

  void post(std::span<const Send> sends) {
    parcels_.resize(sends.size());
    for (size_t i = 0; i < sends.size(); ++i) {
      parcels_[i] = {sends[i].data, sends[i].bytes, Parcel::State::kPosted};
      hub_->queue(rank_, sends[i].peer).push_back(&parcels_[i]);
      hub_->wake[sends[i].peer].notify_all();
      counters_.bytes_sent += sends[i].bytes;
    }
  }

  Status receive(std::unique_lock<std::mutex>& lock, const Receive& r) {
    auto& queue = hub_->queue(r.peer, rank_);
    hub_->wake[rank_].wait(
        lock, [&] { return !queue.empty() || hub_->closer >= 0 || hub_->left[r.peer]; });
    if (hub_->closer >= 0) return hub_->verdict(rank_);
    if (queue.empty()) return gone(r.peer);
    Parcel* parcel = queue.front();
    if (parcel->bytes != r.bytes) {
      return internal_error(fmt::format(
          "rank {} sends {} bytes where rank {} expects {}: the ranks run different programs or "
          "settings",
          r.peer, parcel->bytes, rank_, r.bytes));
    }
    queue.pop_front();
    parcel->state = Parcel::State::kCopying;
    lock.unlock();
    if (r.bytes > 0) std::memcpy(r.data, parcel->data, r.bytes);
    lock.lock();
    parcel->state = Parcel::State::kTaken;
    hub_->wake[r.peer].notify_all();
    return {};
  }

  /// Returns when no peer will touch our memory again: every parcel is taken or, after an error,
  /// withdrawn.
  Status finish_sends(std::unique_lock<std::mutex>& lock, std::span<const Send> sends, bool ok) {
    Status status;
    for (size_t i = 0; i < sends.size(); ++i) {
      const int peer = sends[i].peer;
      Parcel& parcel = parcels_[i];
      while (parcel.state != Parcel::State::kTaken) {
        const bool hopeless = !ok || hub_->closer >= 0 || hub_->left[peer];
        if (hopeless && parcel.state == Parcel::State::kPosted) {
          std::erase(hub_->queue(rank_, peer), &parcel);
          if (status.ok()) status = hub_->closer >= 0 ? hub_->verdict(rank_) : gone(peer);
          break;
        }
        hub_->wake[rank_].wait(lock);
      }
    }
    return status;
  }

  Status gone(int peer) const {
    return unavailable(
        fmt::format("rank {} left the group while rank {} still needs it", peer, rank_));
  }

  std::shared_ptr<Hub> hub_;
  const int rank_;
  const Fd cancelled_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::vector<Parcel> parcels_;
  Counters counters_;
};

}  // namespace

std::vector<std::unique_ptr<Group>> make_local_groups(int size) {
  auto hub = std::make_shared<Hub>(size);
  std::vector<std::unique_ptr<Group>> groups;
  for (int rank = 0; rank < size; ++rank) groups.push_back(std::make_unique<LocalGroup>(hub, rank));
  return groups;
}

}  // namespace cafetiere
