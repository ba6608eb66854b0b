// SPDX-License-Identifier: Apache-2.0
// The shared-memory protocol in every order in which its two sides can take their steps: no wake-up is
// lost, no byte is read before it is written or after it is gone. What runs is core/comm's own code,
// compiled with words that ask a scheduler before each access (shared_words.h).
//
// The model is x86's: stores are delayed in order, loads are not. What ARM may reorder beyond that is
// left to the thread sanitizer's run of the other tests.
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/comm/shm_endpoint.h"
#include "tests/interleaving/machine.h"

namespace cafetiere::test {
namespace {

/// What a side sends and receives, in rounds: lengths of messages.
struct Round {
  std::vector<size_t> sends, receives;
  bool in_place = false;  // the last one that comes
};

struct Plan {
  std::vector<Round> sides[2];
  bool lends = false;  // messages lie in lent memory
  int gives_up = -1;   // the side that ends when all is sent
};

constexpr size_t kMost = 64;  // bytes of a message
constexpr size_t kMemory = 4 * kMost;

class LinkRun : public Run {
 public:
  explicit LinkRun(const Plan& plan)
      : plan_(plan), machine_({[this] { program(0); }, [this] { program(1); }}) {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    auto maker = ShmLink::create();
    EXPECT_TRUE(maker.ok()) << maker.status().message();
    auto opener = ShmLink::open((*maker)->address());
    EXPECT_TRUE(opener.ok()) << opener.status().message();
    memory_ = *SharedMemory::open((*maker)->address().place, false);
    // All runs begin with the same bytes: the random token has served.
    const_cast<ShmAddress&>((*maker)->address()).token = {};
    std::memset(memory_->data(), 0, sizeof(ShmAddress::token));
    std::unique_ptr<ShmLink> links[] = {std::move(*maker), std::move(*opener)};
    for (int i = 0; i < 2; ++i) {
      Side& side = sides_[i];
      side.socket = Fd(fds[i]);
      side.link = links[i].get();
      side.end = std::make_unique<ShmEndpoint>(PeerName{i, 1 - i, "the test"}, std::move(links[i]),
                                               fds[i]);
      side.polls.reserve(4);
      if (plan.lends) {
        side.source = *SharedMemory::create(kMemory);
        side.end->lend(side.source);
      }
    }
  }

  Machine& machine() override { return machine_; }

  uint64_t memory() const override {
    uint64_t hash = hash_bytes(memory_->data(), memory_->size());
    for (const Side& side : sides_) {
      int waiting = 0;
      ioctl(side.socket.get(), FIONREAD, &waiting);
      hash = mix(hash, uint64_t(waiting));
      if (side.source) hash = mix(hash, hash_bytes(side.source->data(), kMemory));
      hash = mix(hash, hash_bytes(side.in, sizeof side.in));
    }
    return hash;
  }

 private:
  struct Side {
    Fd socket;
    const ShmLink* link = nullptr;
    std::unique_ptr<ShmEndpoint> end;
    std::shared_ptr<SharedMemory> source;
    std::byte out[kMemory]{}, in[kMemory]{};
    const void* lies = nullptr;
    bool checked = false;  // what came in this round
    std::vector<pollfd> polls;
  };

  /// Byte `i` of a side's message, so that none looks like its neighbour or another side's.
  static std::byte value(int side, size_t round, size_t i) {
    return std::byte(1 + side * 100 + round * 40 + i % 37);
  }

  /// The engine's loop for one endpoint.
  void program(int rank) {
    for (size_t round = 0; round < plan_.sides[rank].size(); ++round) {
      if (!one_round(rank, round)) return;
    }
  }

  bool one_round(int rank, size_t round) {
    Side& side = sides_[rank];
    ShmEndpoint& end = *side.end;
    post(rank, round);
    while (true) {
      machine_.forget(digest(rank, round));
      bool moved = false;
      if (end.sending() || end.receiving()) {
        const auto done = end.progress();
        if (!done.ok()) return stopped(rank, done.status());
        moved = done->any();
      }
      if (rank == plan_.gives_up && !end.sending()) return give_up(rank);
      if (!end.receiving() && !side.checked) {
        const bool right = check(rank, round);
        if (Status status = end.release(); !status.ok()) return stopped(rank, status);
        if (!right) machine_.fail("a wrong byte arrived");
        side.checked = moved = true;
      }
      if (!end.sending() && side.checked) {
        const auto settled = end.settled();
        if (!settled.ok()) return stopped(rank, settled.status());
        if (*settled) return true;
      }
      if (!moved) wait(&side);
    }
  }

  /// A hash of all that the side's next steps depend on, between two turns of its loop.
  uint64_t digest(int rank, size_t round) const {
    const Side& side = sides_[rank];
    const uint64_t end = hash_bytes(side.end.get(), sizeof *side.end);
    return mix(mix(mix(end, hash_bytes(side.link, sizeof *side.link)), round), side.checked);
  }

  void post(int rank, size_t round) {
    Side& side = sides_[rank];
    const Round& r = plan_.sides[rank][round];
    std::byte* out = plan_.lends ? side.source->data() : side.out;
    if (plan_.lends) machine_.access(nullptr, 0);  // what follows changes what was lent before
    for (size_t bytes : r.sends) {
      for (size_t i = 0; i < bytes; ++i) out[i] = value(rank, round, i);
      side.end->send(out, bytes);
      out += bytes;
    }
    std::byte* in = side.in;
    for (size_t bytes : r.receives) {
      const bool in_place = r.in_place && bytes == r.receives.back();
      side.end->receive(in, bytes, in_place ? &side.lies : nullptr);
      in += bytes;
    }
    side.lies = nullptr;
    side.checked = false;
  }

  /// Whether all that came in this round is what the peer sent in it.
  bool check(int rank, size_t round) {
    const Side& side = sides_[rank];
    const std::byte* in = side.in;
    for (size_t bytes : plan_.sides[rank][round].receives) {
      const auto* at = in;
      if (side.lies) {
        at = static_cast<const std::byte*>(side.lies);
        machine_.access(at, bytes);
      }
      for (size_t i = 0; i < bytes; ++i) {
        if (at[i] != value(1 - rank, round, i)) return false;
      }
      in += bytes;
    }
    return true;
  }

  bool give_up(int rank) {
    Side& side = sides_[rank];
    side.end->give_up();
    machine_.access(nullptr, 0);
    std::fill_n(side.source->data(), kMemory, std::byte{0xff});  // its own again
    shutdown(side.socket.get(), SHUT_RDWR);
    return false;
  }

  bool stopped(int rank, const Status& status) {
    if (plan_.gives_up != 1 - rank || status.code() != ErrorCode::kUnavailable) {
      machine_.fail("rank " + std::to_string(rank) + " got an error: " + status.message());
    }
    return false;
  }

  void wait(Side* side) {
    side->polls.clear();
    if (side->end->arm(&side->polls)) machine_.sleep(side->socket.get());
    side->end->disarm();
  }

  const Plan& plan_;
  std::shared_ptr<SharedMemory> memory_;
  Side sides_[2];
  Machine machine_;
};

void explore(const Plan& plan) {
  const Explored explored = test::explore([&] { return std::make_unique<LinkRun>(plan); });
  EXPECT_EQ(explored.failure, "");
  EXPECT_GT(explored.states, 200u) << "the sides hardly met";
  EXPECT_GT(explored.most_sleeps, 0) << "nobody had to be woken";
}

TEST(Interleaving, AMessageThatFitsTheRing) { explore({{{{{0}, {}}}, {{{}, {0}}}}}); }

TEST(Interleaving, AMessageLongerThanTheRing) { explore({{{{{24}, {}}}, {{{}, {24}}}}}); }

TEST(Interleaving, BothWaysAtOnce) { explore({{{{{0}, {0}}}, {{{0}, {0}}}}}); }

TEST(Interleaving, ThereAndBack) { explore({{{{{0}, {}}, {{}, {0}}}, {{{}, {0}}, {{0}, {}}}}}); }

TEST(Interleaving, ALoanThatIsCopied) { explore({{{{{40}, {}}}, {{{}, {40}}}}, true}); }

TEST(Interleaving, ALoanReadInPlace) { explore({{{{{40}, {}}}, {{{}, {40}, true}}}, true}); }

TEST(Interleaving, MoreLoansThanSlots) { explore({{{{{32, 32}, {}}}, {{{}, {32, 32}}}}, true}); }

TEST(Interleaving, ALoanIsReusedInTheNextRound) {
  explore({{{{{32}, {}}, {{32}, {}}}, {{{}, {32}, true}, {{}, {32}, true}}}, true});
}

TEST(Interleaving, TheLenderGivesUp) {
  explore({{{{{40}, {}}}, {{{}, {40}}}}, true, 0});
  explore({{{{{40}, {}}}, {{{}, {40}, true}}}, true, 0});
}

}  // namespace
}  // namespace cafetiere::test
