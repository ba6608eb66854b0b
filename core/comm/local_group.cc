// SPDX-License-Identifier: Apache-2.0
// LocalGroup: ranks as threads of one process. There is no time-out, because a thread cannot die
// without its process.
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <deque>
#include <mutex>

#include "core/comm/engine.h"
#include "core/comm/local_endpoint.h"
#include "core/comm/one_round.h"

namespace cafetiere {
namespace {

/// The state shared by the ranks of a group.
struct SharedState {
  explicit SharedState(int n) : size(n), lanes(size_t(n) * n), ends(size_t(n) * n) {
    for (int rank = 0; rank < n; ++rank) members.push_back(std::make_shared<LocalMember>());
    for (auto& lane : lanes) lane = std::make_shared<LocalLane>();
  }

  const std::shared_ptr<LocalLane>& lane(int from, int to) {
    return lanes[size_t(from) * size + to];
  }

  /// Sockets of connections to `to` that `from` has not accepted yet.
  std::deque<Fd>& waiting_ends(int from, int to) { return ends[size_t(from) * size + to]; }

  /// Closes the group with `why` unless it is already closed; returns the error for `rank`.
  Status close(int rank, Status why) {
    std::lock_guard lock(mutex);
    if (closer < 0) {
      closer = rank;
      reason = std::move(why);
    }
    closed.store(true, std::memory_order_release);
    for (auto& member : members) member->wake();
    return rank == closer
               ? reason
               : unavailable(fmt::format("rank {} gave up: {}", closer, reason.message()));
  }

  const int size;
  std::vector<std::shared_ptr<LocalMember>> members;
  std::vector<std::shared_ptr<LocalLane>> lanes;
  std::atomic<bool> closed{false};
  std::mutex mutex;  // guards the rest
  std::vector<std::deque<Fd>> ends;
  int closer = -1;  // the rank that closed the group, if any
  Status reason;
};

class LocalGroup : public Group {
 public:
  LocalGroup(std::shared_ptr<SharedState> shared, int rank)
      : shared_(std::move(shared)),
        rank_(rank),
        engine_(rank, endpoints(), shared_->members[rank]->fd(), shared_->closed, [](int) {}) {}

  ~LocalGroup() override {
    shared_->members[rank_]->left.store(true);
    for (auto& member : shared_->members) member->notify();
    std::lock_guard lock(shared_->mutex);
    for (int peer = 0; peer < size(); ++peer) shared_->waiting_ends(rank_, peer).clear();
  }

  int rank() const override { return rank_; }
  int size() const override { return shared_->size; }

  Status exchange(std::span<const Send> sends, std::span<const Receive> receives) override {
    OneRound round(sends, receives);
    return run(&round);
  }

  Status run(Schedule* schedule) override {
    const auto start = std::chrono::steady_clock::now();
    Status status = engine_.run(schedule);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    seconds_.store(seconds_.load() + took.count());
    return status.ok() ? status : shared_->close(rank_, std::move(status));
  }

  Result<PeerLinks> open_links() override {
    PeerLinks links{.streams = {}, .cancelled = cancelled_.get(), .timeout_ms = 0};
    if (!cancelled_.valid()) return io_error("group: cannot make an eventfd");
    std::lock_guard lock(shared_->mutex);
    for (int peer = 0; peer < size(); ++peer) {
      links.streams.emplace_back();
      if (peer == rank_) continue;
      std::deque<Fd>& mine = shared_->waiting_ends(rank_, peer);
      if (mine.empty()) CFT_TRY(connect_to(peer));
      links.streams.back() = Stream(std::move(mine.front()));
      mine.pop_front();
    }
    return links;
  }

  void cancel() override {
    eventfd_write(cancelled_.get(), 1);
    (void)shared_->close(rank_,
                         {ErrorCode::kCancelled, fmt::format("rank {} was cancelled", rank_)});
  }

  Counters counters() const override {
    return {.bytes_sent = engine_.bytes_sent(), .seconds = seconds_.load()};
  }

 private:
  Engine::Endpoints endpoints() const {
    Engine::Endpoints all(shared_->size);
    for (int peer = 0; peer < shared_->size; ++peer) {
      if (peer == rank_) continue;
      all[peer] = std::make_unique<LocalEndpoint>(
          PeerName{rank_, peer, "this process"},
          LocalEndpoint::Ends{shared_->members[rank_], shared_->members[peer],
                              shared_->lane(rank_, peer), shared_->lane(peer, rank_)});
    }
    return all;
  }

  /// Creates a socket pair, one end for each rank; the end of a rank that has left is closed.
  Status connect_to(int peer) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
      return io_error("group: cannot make a pair of sockets: " + errno_text(errno));
    }
    shared_->waiting_ends(rank_, peer).emplace_back(ends[0]);
    Fd theirs(ends[1]);
    if (!shared_->members[peer]->left.load())
      shared_->waiting_ends(peer, rank_).push_back(std::move(theirs));
    return {};
  }

  const std::shared_ptr<SharedState> shared_;
  const int rank_;
  const Fd cancelled_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  Engine engine_;
  std::atomic<double> seconds_{0};
};

}  // namespace

std::vector<std::unique_ptr<Group>> make_local_groups(int size) {
  auto shared = std::make_shared<SharedState>(size);
  std::vector<std::unique_ptr<Group>> groups;
  for (int rank = 0; rank < size; ++rank)
    groups.push_back(std::make_unique<LocalGroup>(shared, rank));
  return groups;
}

}  // namespace cafetiere
