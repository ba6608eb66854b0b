// SPDX-License-Identifier: Apache-2.0
#include "core/comm/mesh.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "core/comm/pulse.h"

namespace cafetiere {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kAcceptsPerRound = 32;
constexpr size_t kMaxUnauthenticated = 128;  // beyond what the group's own ranks need

/// A connection whose handshake is not finished. It may take as long as the group: a rank on a busy
/// machine is slow, and who says nothing is in nobody's way.
struct Candidate {
  Fd fd;
  Handshake handshake;
  bool ours;  // this rank connected
  std::string address;
};

class MeshBuilder {
 public:
  explicit MeshBuilder(const MeshOptions& options)
      : options_(options),
        size_(options.self.size),
        deadline_(Clock::now() + std::chrono::milliseconds(options.connect_timeout_ms)),
        links_(options.self.size) {}

  /// A rank that fails tells the others why: they would know only that it has left.
  Result<std::vector<PeerLink>> build() {
    const Status status = connect_all();
    if (status.ok()) return std::move(links_);
    for (PeerLink& link : links_) send_pulse({Pulse::kAbort, status.message()}, &link.control);
    return status;
  }

 private:
  Status connect_all() {
    CFT_TRY(call_lower_ranks());
    while (!complete()) {
      if (Clock::now() >= deadline_) return missing();
      CFT_TRY(wait());
      CFT_TRY(watch_established());
      CFT_TRY(step_candidates());
      accept_connections();
    }
    return {};
  }

  Status call_lower_ranks() {
    for (int peer = 0; peer < size_; ++peer) links_[peer].address = options_.addresses[peer];
    for (int peer = 0; peer < options_.self.rank; ++peer) {
      CFT_ASSIGN(const SocketAddress to, parse_address(options_.addresses[peer]));
      for (Channel channel : {Channel::kData, Channel::kControl}) {
        auto fd = start_connect(to);
        if (!fd.ok()) return fd.status().with_context(fmt::format("rank {}", peer));
        candidates_.push_back({std::move(*fd), Handshake::initiate(options_.self, peer, channel),
                               true, options_.addresses[peer]});
      }
    }
    return {};
  }

  bool complete() const {
    for (int peer = 0; peer < size_; ++peer) {
      if (peer != options_.self.rank && !links_[peer].complete()) return false;
    }
    return true;
  }

  /// Order of polls_: wake, listener, established control connections, candidates.
  Status wait() {
    polls_.assign({{options_.wake, POLLIN, 0}, {options_.listener, POLLIN, 0}});
    for (const PeerLink& link : links_) polls_.push_back({link.control.fd(), POLLRDHUP, 0});
    for (const Candidate& c : candidates_) {
      polls_.push_back({c.fd.get(), c.handshake.events(), 0});
    }
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now());
    poll(polls_.data(), polls_.size(), static_cast<int>(std::max<int64_t>(0, rest.count())));
    if (polls_[0].revents != 0) {
      return {ErrorCode::kCancelled, fmt::format("rank {} was cancelled", options_.self.rank)};
    }
    return {};
  }

  /// A rank that is lost after connecting will not come back: report it now, not at the deadline.
  Status watch_established() {
    for (int peer = 0; peer < size_; ++peer) {
      if (polls_[2 + peer].revents == 0) continue;
      const std::string why = last_words(&links_[peer].control);
      return unavailable(fmt::format("rank {} at {} left while the group was being formed{}{}",
                                     peer, links_[peer].address, why.empty() ? "" : ": ", why));
    }
    return {};
  }

  Status step_candidates() {
    const size_t first = polls_.size() - candidates_.size();
    for (size_t i = 0; i < candidates_.size(); ++i) {
      Candidate& c = candidates_[i];
      if (polls_[first + i].revents == 0) continue;
      const auto state = c.handshake.step(c.fd.get());
      if (state == Handshake::State::kDone) adopt(&c);
      if (state == Handshake::State::kFailed) CFT_TRY(reject(&c, c.handshake.status().message()));
    }
    std::erase_if(candidates_, [](const Candidate& c) { return !c.fd.valid(); });
    return {};
  }

  void adopt(Candidate* c) {
    PeerLink& link = links_[c->handshake.peer()];
    const bool data = c->handshake.channel() == Channel::kData;
    Stream& slot = data ? link.data : link.control;
    if (slot.valid()) {
      options_.log.warning("rank {}: dropped a second connection from rank {} at {}",
                           options_.self.rank, c->handshake.peer(), c->address);
    } else {
      (data ? tune_data : tune_control)(c->fd.get(), options_.silence_timeout_ms);
      slot = Stream(std::move(c->fd), c->handshake.take_tls());
    }
    c->fd = Fd();
  }

  /// A failure of an unauthenticated peer is logged; that of a connection we initiated ends the
  /// attempt.
  Status reject(Candidate* c, const std::string& why) {
    c->fd = Fd();
    if (c->ours) {
      const ErrorCode code = c->handshake.status().code();
      return {code, fmt::format("rank {} at {} {}", c->handshake.peer(), c->address, why)};
    }
    last_refusal_ = fmt::format("{} {}", c->address, why);
    options_.log.warning("rank {}: dropped a connection: {}", options_.self.rank, last_refusal_);
    return {};
  }

  void accept_connections() {
    for (int i = 0; i < kAcceptsPerRound; ++i) {
      Fd fd(accept4(options_.listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd.valid()) return;
      if (candidates_.size() >= kMaxUnauthenticated + 2 * links_.size())
        drop_oldest_unauthenticated();
      std::string address = remote_address(fd.get()).text();
      candidates_.push_back(
          {std::move(fd), Handshake::accept(options_.self), false, std::move(address)});
    }
  }

  void drop_oldest_unauthenticated() {
    auto oldest = std::find_if(candidates_.begin(), candidates_.end(),
                               [](const Candidate& c) { return !c.ours; });
    if (oldest != candidates_.end()) candidates_.erase(oldest);
  }

  Status missing() const {
    std::string who;
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == options_.self.rank || links_[peer].complete()) continue;
      who += fmt::format("{}rank {} at {}", who.empty() ? "" : ", ", peer, links_[peer].address);
    }
    return timeout_error(fmt::format(
        "rank {} waited {} ms for {}{}{}; is that rank running, and its port reachable?",
        options_.self.rank, options_.connect_timeout_ms, who,
        last_refusal_.empty() ? "" : "; the last refused connection: ", last_refusal_));
  }

  const MeshOptions& options_;
  const int size_;
  const Clock::time_point deadline_;
  std::vector<PeerLink> links_;
  std::vector<Candidate> candidates_;
  std::vector<pollfd> polls_;
  std::string last_refusal_;
};

}  // namespace

Result<std::vector<PeerLink>> form_mesh(const MeshOptions& options) {
  return MeshBuilder(options).build();
}

}  // namespace cafetiere
