// SPDX-License-Identifier: Apache-2.0
#include "core/comm/ucx_mesh.h"

#include <fmt/format.h>

#include <chrono>

#include "core/comm/collectives.h"
#include "core/comm/ucx_endpoint.h"

namespace cafetiere {
namespace {

using Bytes = std::vector<std::byte>;
using Clock = std::chrono::steady_clock;
using Peers = std::vector<std::optional<UcxPeer>>;

enum class Answer : uint8_t { kYes, kNo, kNotAsked, kNotYet };

constexpr auto kTurn = std::chrono::milliseconds(1);
constexpr int kFewestLooks = 16;  // per turn
const std::string kWait = "wait";

/// Gathers all answers, each an address or a reason: "", why a rank refuses, or kWait.
Result<std::string> hear_all(Group* group, Answer answer, std::span<const std::byte> with,
                             std::vector<Bytes>* all) {
  Bytes mine{std::byte(answer)};
  mine.insert(mine.end(), with.begin(), with.end());
  CFT_ASSIGN(*all, all_gather_v(group, mine));
  bool wait = false;
  for (size_t rank = 0; rank < all->size(); ++rank) {
    const Bytes& theirs = (*all)[rank];
    if (theirs.empty()) return internal_error(fmt::format("rank {} gave no answer", rank));
    wait |= theirs[0] == std::byte(Answer::kNotYet);
    if (theirs[0] == std::byte(Answer::kYes) || theirs[0] == std::byte(Answer::kNotYet)) continue;
    if (theirs[0] == std::byte(Answer::kNotAsked)) {
      return fmt::format("rank {} did not ask for UCX", rank);
    }
    return fmt::format(
        "rank {}: {}", rank,
        std::string_view(reinterpret_cast<const char*>(theirs.data()) + 1, theirs.size() - 1));
  }
  return wait ? kWait : std::string();
}

/// Whether all posted messages are sent and received.
Result<bool> is_quiet(const Engine::Endpoints& endpoints) {
  bool quiet = true;
  for (const auto& e : endpoints) {
    if (!e) continue;
    CFT_TRY(e->progress().status());
    quiet &= !e->pending();
  }
  return quiet;
}

/// Makes progress for a while, or until nothing is pending here; returns whether nothing is.
Result<bool> take_turn(const Engine::Endpoints& endpoints) {
  const auto end = Clock::now() + kTurn;
  bool quiet = false;
  for (int looks = 0; looks < kFewestLooks || (!quiet && Clock::now() < end); ++looks) {
    CFT_ASSIGN(quiet, is_quiet(endpoints));
  }
  return quiet;
}

/// UCX connects two ranks at their first message, and only while both make progress: so each rank
/// now sends to all others, alternating with an exchange of which ranks are done. Returns "" or why
/// it failed.
Result<std::string> greet_all(Group* group, const Engine::Endpoints& endpoints, int timeout_ms) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  const std::byte out{};
  Bytes in(endpoints.size());
  for (size_t peer = 0; peer < endpoints.size(); ++peer) {
    if (!endpoints[peer]) continue;
    endpoints[peer]->send(&out, 1);
    endpoints[peer]->receive(&in[peer], 1, nullptr);
  }
  Result<std::string> why_not = kWait;
  while (why_not.ok() && *why_not == kWait) {
    const Result<bool> quiet = take_turn(endpoints);
    const bool late = quiet.ok() && !*quiet && Clock::now() > deadline;
    const std::string reason =
        late ? fmt::format("UCX did not reach all ranks within {} ms", timeout_ms)
             : quiet.status().message();
    const Answer answer = late || !quiet.ok() ? Answer::kNo
                          : *quiet            ? Answer::kYes
                                              : Answer::kNotYet;
    std::vector<Bytes> answers;
    why_not = hear_all(group, answer, std::as_bytes(std::span(reason)), &answers);
  }
  if (!why_not.ok() || !why_not->empty()) {
    for (const auto& e : endpoints) {
      if (e) e->give_up();  // `in` and `out` go out of scope
    }
  }
  return why_not;
}

Result<Engine::Endpoints> connect_all(const Peers& peers, const std::shared_ptr<UcxWorker>& worker,
                                      const std::vector<Bytes>& answers) {
  Engine::Endpoints endpoints(peers.size());
  for (size_t peer = 0; peer < peers.size(); ++peer) {
    if (!peers[peer]) continue;
    CFT_ASSIGN(endpoints[peer], UcxEndpoint::create(peers[peer]->name, worker, peers[peer]->socket,
                                                    std::span(answers[peer]).subspan(1)));
  }
  return endpoints;
}

struct Offer {
  std::shared_ptr<UcxWorker> worker;
  Bytes address;
};

Result<Offer> make_offer(int peers) {
  CFT_ASSIGN(auto worker, UcxWorker::create(peers));
  CFT_ASSIGN(Bytes address, worker->address());
  return Offer{std::move(worker), std::move(address)};
}

}  // namespace

Result<UcxMesh> join_by_ucx(Group* group, const Peers& peers, bool wanted, int timeout_ms) {
  std::vector<Bytes> answers;
  if (!wanted) {
    CFT_TRY(hear_all(group, Answer::kNotAsked, {}, &answers).status());
    return UcxMesh{};
  }
  const auto offer = make_offer(group->size());
  const std::string reason = offer.ok() ? "" : offer.status().message();
  CFT_ASSIGN(std::string why_not, hear_all(group, offer.ok() ? Answer::kYes : Answer::kNo,
                                           offer.ok() ? std::span<const std::byte>(offer->address)
                                                      : std::as_bytes(std::span(reason)),
                                           &answers));
  if (!why_not.empty()) return UcxMesh{{}, std::move(why_not)};
  auto endpoints = connect_all(peers, offer->worker, answers);
  const std::string failure = endpoints.ok() ? "" : endpoints.status().message();
  CFT_ASSIGN(why_not, hear_all(group, endpoints.ok() ? Answer::kYes : Answer::kNo,
                               std::as_bytes(std::span(failure)), &answers));
  if (!why_not.empty()) return UcxMesh{{}, std::move(why_not)};
  CFT_ASSIGN(why_not, greet_all(group, *endpoints, timeout_ms));
  if (!why_not.empty()) return UcxMesh{{}, std::move(why_not)};
  return UcxMesh{std::move(*endpoints), ""};
}

}  // namespace cafetiere
