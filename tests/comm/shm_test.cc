// SPDX-License-Identifier: Apache-2.0
// Shared memory between ranks: the ring, what it refuses, and when it is used at all.
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <thread>

#include "core/comm/collectives.h"
#include "core/comm/shm_link.h"
#include "core/comm/shm_loan.h"
#include "core/comm/shm_mesh.h"
#include "ranks.h"

namespace cafetiere::test {
namespace {

using testing::HasSubstr;

struct LinkPair {
  std::unique_ptr<ShmLink> maker, opener;
};

LinkPair make_pair() {
  auto maker = ShmLink::create();
  EXPECT_TRUE(maker.ok()) << maker.status().message();
  auto opener = ShmLink::open((*maker)->address());
  EXPECT_TRUE(opener.ok()) << opener.status().message();
  (*maker)->drop_fd();
  return {std::move(*maker), std::move(*opener)};
}

iovec part(std::vector<int>& values, size_t first, size_t count) {
  return {values.data() + first, count * sizeof(int)};
}

/// The peer decides what lies at the path, also between two looks at it.
TEST(SharedMemory, MapsWhatItHasLookedAt) {
  constexpr size_t kLarge = 1 << 20;
  auto large = std::move(*SharedMemory::create(kLarge));
  auto small = std::move(*SharedMemory::create(4096));
  const Fd at(dup(large->place().fd));
  SharedMemory::Place place = large->place();
  place.fd = at.get();
  std::atomic<bool> stop{false};
  std::thread swapper([&] {
    while (!stop) {
      dup2(small->place().fd, at.get());
      dup2(large->place().fd, at.get());
    }
  });
  for (int i = 0; i < 5000; ++i) {
    auto opened = SharedMemory::open(place, false);
    if (opened.ok()) {
      EXPECT_EQ((*opened)->data()[kLarge - 1], std::byte{0});  // or SIGBUS
    }
  }
  stop = true;
  swapper.join();
}

/// Memory that is not sealed could be cut, and reading it would end the process with SIGBUS.
TEST(SharedMemory, OpensNothingThatCouldShrink) {
  constexpr size_t kBytes = 4096;
  const Fd file(fileno(tmpfile())), unsealed(memfd_create("unsealed", MFD_CLOEXEC));
  for (const int fd : {file.get(), unsealed.get()}) {
    struct stat about {};
    ASSERT_EQ(ftruncate(fd, kBytes), 0);
    ASSERT_EQ(fstat(fd, &about), 0);
    const auto opened = SharedMemory::open({getpid(), fd, kBytes, about.st_ino}, true);
    EXPECT_THAT(opened.status().message(), HasSubstr("shared memory: ")) << fd;
  }
}

TEST(ShmLink, BytesComeInOrderAroundTheRing) {
  LinkPair pair = make_pair();
  std::vector<int> out(3'000'017), in(out.size());
  std::iota(out.begin(), out.end(), 0);
  const auto move = [&](ShmLink& from, ShmLink& to) {
    const size_t total = out.size() * sizeof(int);
    for (size_t written = 0, read = 0; read < total;) {
      // Sizes that divide nothing, in two parts.
      const size_t ask = std::min<size_t>(77'777, total - written);
      auto* source = reinterpret_cast<char*>(out.data()) + written;
      const iovec sends[] = {{source, ask / 3}, {source + ask / 3, ask - ask / 3}};
      auto sent = from.write(sends);
      ASSERT_TRUE(sent.ok());
      written += *sent;
      const iovec receive{reinterpret_cast<char*>(in.data()) + read, total - read};
      auto received = to.read({&receive, 1});
      ASSERT_TRUE(received.ok());
      read += *received;
      ASSERT_LE(read, written);
    }
    EXPECT_EQ(in, out);
    std::fill(in.begin(), in.end(), -1);
  };
  move(*pair.maker, *pair.opener);
  move(*pair.opener, *pair.maker);
}

TEST(ShmLink, FullAndEmptyRingsTakeNothing) {
  LinkPair pair = make_pair();
  std::vector<int> values(100'000, 7);
  const iovec some = part(values, 0, values.size());
  EXPECT_EQ(*pair.opener->read({&some, 1}), 0u);
  size_t held = 0;
  for (size_t n; (n = *pair.maker->write({&some, 1})) > 0;) held += n;
  EXPECT_GE(held, size_t{1} << 18);
  EXPECT_TRUE(pair.maker->may_sleep(true, true));
  EXPECT_FALSE(pair.opener->may_sleep(false, true));
  EXPECT_GT(*pair.opener->read({&some, 1}), 0u);
  EXPECT_TRUE(pair.opener->must_wake_peer());
  EXPECT_FALSE(pair.opener->must_wake_peer()) << "once is enough";
}

TEST(ShmLink, OpensNothingButThePeersMemory) {
  auto maker = ShmLink::create();
  ASSERT_TRUE(maker.ok());
  ShmAddress wrong_token = (*maker)->address();
  wrong_token.token[5] ^= 1;
  EXPECT_THAT(ShmLink::open(wrong_token).status().message(), HasSubstr("not the peer's"));
  ShmAddress wrong_fd = (*maker)->address();
  wrong_fd.place.fd = STDERR_FILENO;
  EXPECT_EQ(ShmLink::open(wrong_fd).status().code(), ErrorCode::kIo);
  ShmAddress nobody = (*maker)->address();
  nobody.place.pid = 0;
  EXPECT_EQ(ShmLink::open(nobody).status().code(), ErrorCode::kIo);
}

TEST(ShmLink, AnotherUserCannotOpenIt) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  auto maker = ShmLink::create();
  ASSERT_TRUE(maker.ok());
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(2);
    _exit(ShmLink::open((*maker)->address()).ok() ? 1 : 0);
  }
  int result = -1;
  waitpid(child, &result, 0);
  EXPECT_EQ(WEXITSTATUS(result), 0);
}

std::shared_ptr<SharedMemory> numbered(size_t count) {
  auto memory = SharedMemory::create(count * sizeof(int));
  EXPECT_TRUE(memory.ok()) << memory.status().message();
  auto* values = reinterpret_cast<int*>((*memory)->data());
  std::iota(values, values + count, 0);
  return *memory;
}

TEST(ShmLoan, LongMessagesAreReadWhereTheyLie) {
  LinkPair pair = make_pair();
  const size_t count = 1'000'003;  // far more than a ring holds
  const auto memory = numbered(count);
  pair.maker->lend(memory);
  int header = 42, after = 43, got = 0;
  const iovec body{memory->data(), memory->size()};
  const iovec message[] = {{&header, sizeof header}, body}, next{&after, sizeof after};
  EXPECT_EQ(*pair.maker->write(message), sizeof header) << "only the header is copied";
  EXPECT_EQ(*pair.maker->write({&body, 1}), memory->size());
  EXPECT_EQ(*pair.maker->write({&next, 1}), sizeof after);
  EXPECT_FALSE(*pair.maker->all_returned());
  std::vector<int> in(count);
  const iovec head[] = {{&got, sizeof got}, {in.data(), memory->size()}};
  EXPECT_EQ(*pair.opener->read(head), sizeof got);
  EXPECT_EQ(got, 42);
  for (size_t read = 0; read < memory->size();) {
    EXPECT_TRUE(pair.maker->may_sleep(false, true)) << "nothing is returned yet";
    const iovec rest{reinterpret_cast<char*>(in.data()) + read, memory->size() - read};
    const auto n = pair.opener->read({&rest, 1});
    ASSERT_TRUE(n.ok()) << n.status().message();
    ASSERT_GT(*n, 0u);
    read += *n;
  }
  EXPECT_FALSE(pair.maker->may_sleep(false, true));
  EXPECT_TRUE(*pair.maker->all_returned());
  EXPECT_EQ(std::memcmp(in.data(), memory->data(), memory->size()), 0);
  const iovec tail{&got, sizeof got};
  EXPECT_EQ(*pair.opener->read({&tail, 1}), sizeof got);
  EXPECT_EQ(got, 43);
}

TEST(ShmLoan, NoMoreIsLentThanTheRingHolds) {
  LinkPair pair = make_pair();
  const auto memory = numbered(100'000);
  pair.maker->lend(memory);
  const iovec body{memory->data(), memory->size()};
  for (size_t i = 0; i < kLoanSlots; ++i) {
    EXPECT_EQ(*pair.maker->write({&body, 1}), memory->size());
  }
  EXPECT_EQ(*pair.maker->write({&body, 1}), 0u);
  EXPECT_TRUE(pair.maker->may_sleep(true, true));
  EXPECT_EQ(*pair.opener->borrow(memory->size() - 1), nullptr);
  const std::byte* lies = *pair.opener->borrow(memory->size());
  EXPECT_EQ(lies, nullptr) << "it was looked at with another size";
  std::vector<int> in(100'000);
  for (size_t read = 0; read < memory->size();) {
    const iovec rest{reinterpret_cast<char*>(in.data()) + read, memory->size() - read};
    read += *pair.opener->read({&rest, 1});
  }
  EXPECT_FALSE(pair.maker->may_sleep(true, true));
  EXPECT_EQ(*pair.maker->write({&body, 1}), memory->size());
  lies = *pair.opener->borrow(memory->size());
  ASSERT_NE(lies, nullptr);
  EXPECT_EQ(std::memcmp(lies, in.data(), memory->size()), 0);
  EXPECT_TRUE(pair.opener->give_back().ok());
}

TEST(ShmLoan, WhoReadsWhatWasTakenBackKnows) {
  LinkPair pair = make_pair();
  const auto memory = numbered(1'000'000);
  pair.maker->lend(memory);
  const iovec body{memory->data(), memory->size()};
  EXPECT_EQ(*pair.maker->write({&body, 1}), memory->size());
  std::vector<int> in(1'000'000);
  const iovec room = part(in, 0, in.size());
  EXPECT_GT(*pair.opener->read({&room, 1}), 0u);
  pair.maker->give_up();
  EXPECT_EQ(pair.opener->read({&room, 1}).status().code(), ErrorCode::kUnavailable);
}

TEST(ShmLoan, ALenderThatLiesIsFoundOut) {
  const auto memory = numbered(1000);
  const uint64_t bytes = memory->size(), id = memory->place().id;
  struct Lie {
    uint32_t count, memory;
    uint64_t offset, bytes, id;
  };
  const Lie lies[] = {{0, 0, 0, bytes, id},        {1, 1, 0, bytes, id},
                      {99, 50, 0, bytes, id},      {1, 0, 0, 0, id},
                      {1, 0, bytes + 1, 1, id},    {1, 0, 1, bytes, id},
                      {1, 0, 1, ~uint64_t{0}, id}, {1, 0, 0, bytes, id + 1}};
  for (const Lie& lie : lies) {
    auto ring = std::make_unique<LoanRing>();
    ring->memories[0] = memory->place();
    ring->memories[0].id = lie.id;
    ring->memory_count = lie.count;
    ring->loans[0] = {0, lie.memory, lie.offset, lie.bytes};
    ring->lent = 1;
    Borrower borrower(ring.get());
    ASSERT_EQ(borrower.next_at(), 0u);
    std::vector<int> in(1000);
    EXPECT_FALSE(borrower.take(part(in, 0, in.size())).ok());
  }
}

TEST(ShmLoan, ABorrowerThatLiesIsFoundOut) {
  auto ring = std::make_unique<LoanRing>();
  Lender lender(ring.get());
  ring->taken = 7;
  EXPECT_EQ(lender.all_returned().status().code(), ErrorCode::kInternal);
}

TEST(ShmMesh, LinksThoseThatWantIt) {
  const int size = 4;
  auto groups = make_local_groups(size);
  std::vector<std::vector<std::unique_ptr<ShmLink>>> links(size);
  expect_ok(on_ranks(size, [&](int rank) -> Status {
    CFT_ASSIGN(links[rank], share_memory(groups[rank].get(), rank != 2));
    return {};
  }));
  for (int a = 0; a < size; ++a) {
    for (int b = 0; b < size; ++b) EXPECT_EQ(links[a][b] != nullptr, a != b && a != 2 && b != 2);
  }
}

TEST(ShmMesh, RanksWithAndWithoutItWorkTogether) {
  const int size = 4;
  auto groups = make_tcp_groups(size, [](GroupOptions* o) { o->shared_memory = o->rank != 1; });
  expect_ok(on_ranks(size, [&](int rank) -> Status {
    std::vector<int> mine(700'000, rank), all(mine.size() * size);
    CFT_TRY(all_gather(groups[rank].get(), std::as_bytes(std::span(mine)),
                       std::as_writable_bytes(std::span(all))));
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i] != static_cast<int>(i / mine.size())) return internal_error("wrong bytes");
    }
    return {};
  }));
}

}  // namespace
}  // namespace cafetiere::test
