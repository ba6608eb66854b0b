// SPDX-License-Identifier: Apache-2.0
// All-reduces between processes, or what plain TCP streams over loopback reach.
//
//   comm_bench raw
//   comm_bench RANKS tcp|encrypted|shared float32|bfloat16|float16 tree|ring
//
// Prints JSON: quantiles for `raw`, else the seconds of each run on rank 0 by the array's KiB.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "core/comm/collectives.h"
#include "core/comm/ring.h"
#include "core/comm/shard_tree.h"
#include "core/comm/socket.h"
#include "core/comm/tcp_group.h"

namespace cafetiere {
namespace {

constexpr size_t kStreamBytes = size_t{256} << 20;  // of one raw measurement
constexpr size_t kStreamChunk = 256 << 10;
constexpr size_t kMessage = 4096;
constexpr size_t kWarmUp = 3;
constexpr size_t kBytes = size_t{1} << 30;  // summed for each size, within these numbers of runs
constexpr size_t kFewest = 5, kMost = 400;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Quantiles of the seconds that each run took.
nlohmann::json summary(std::vector<double> seconds, size_t bytes) {
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  return {{"runs", seconds.size()},
          {"median_us", median * 1e6},
          {"min_us", seconds.front() * 1e6},
          {"p90_us", seconds[seconds.size() * 9 / 10] * 1e6},
          {"gb_per_s", static_cast<double>(bytes) / median / 1e9}};
}

/// What is measured.
struct Setting {
  int ranks = 2;
  bool shared_memory = false;
  bool encrypt = false;
  Wire wire = Wire::kFloat32;
  bool ring = false;
};

Status reduce(Group* group, TreeSum* sum, std::span<float> arena, const Setting& setting) {
  sum->reset();
  CFT_TRY(sum->add(arena));
  if (!setting.ring) return all_reduce(group, *sum, arena, setting.wire);
  const auto slices = even_slices(arena.size(), group->size());
  const size_t begin = slices[group->rank()], end = slices[group->rank() + 1];
  CFT_TRY(
      ring_reduce_scatter(group, *sum, slices, arena.subspan(begin, end - begin), setting.wire));
  return ring_all_gather(group, arena, slices, setting.wire);
}

/// The seconds that all-reduces of `bytes` took.
Result<std::vector<double>> time_all_reduce(Group* group, size_t bytes, const Setting& setting) {
  CFT_ASSIGN(const std::shared_ptr<SharedMemory> memory, SharedMemory::create(bytes));
  std::memset(memory->data(), 0, bytes);
  group->lend(memory);
  const std::span<float> arena(reinterpret_cast<float*>(memory->data()), bytes / sizeof(float));
  const int rank = group->rank();
  TreeSum sum({rank, rank + 1}, group->size(), arena.size(), nullptr);
  std::vector<double> seconds;
  const size_t runs = std::clamp(kBytes / bytes, kFewest, kMost);
  for (size_t run = 0; run < kWarmUp + runs; ++run) {
    CFT_TRY(barrier(group));
    const double start = now();
    CFT_TRY(reduce(group, &sum, arena, setting));
    if (run >= kWarmUp) seconds.push_back(now() - start);
  }
  return seconds;
}

void wait_for(int fd, short events) {
  pollfd p{fd, events, 0};
  poll(&p, 1, -1);
}

/// Moves kStreamBytes through a socket in plain chunks; false when it breaks.
template <class Move>
bool stream(int fd, short events, const Move& move) {
  for (size_t done = 0; done < kStreamBytes;) {
    const ssize_t n = move(std::min(kStreamChunk, kStreamBytes - done));
    if (n > 0) {
      done += static_cast<size_t>(n);
    } else if (n < 0 && errno == EAGAIN) {
      wait_for(fd, events);
    } else {
      return false;
    }
  }
  return true;
}

bool send_stream(int fd) {
  std::vector<char> bytes(kStreamChunk);
  return stream(fd, POLLOUT,
                [&](size_t n) { return send(fd, bytes.data(), n, MSG_NOSIGNAL | MSG_DONTWAIT); });
}

bool receive_stream(int fd) {
  std::vector<char> bytes(kStreamChunk);
  return stream(fd, POLLIN, [&](size_t n) { return recv(fd, bytes.data(), n, MSG_DONTWAIT); });
}

/// A child process sends over `streams` connections at once, one thread each; we receive.
Result<nlohmann::json> time_raw(int streams) {
  CFT_ASSIGN(const Fd listener, listen_on("127.0.0.1"));
  const SocketAddress at = local_address(listener.get());
  const pid_t child = fork();
  std::vector<Fd> fds;
  for (int i = 0; i < streams; ++i) {
    if (child == 0) {
      CFT_ASSIGN(Fd fd, start_connect(at));
      wait_for(fd.get(), POLLOUT);
      fds.push_back(std::move(fd));
    } else {
      wait_for(listener.get(), POLLIN);
      fds.emplace_back(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK));
    }
    tune_data(fds.back().get());
  }
  std::vector<double> seconds;
  for (int run = 0; run < 5; ++run) {
    const double start = now();
    std::vector<std::thread> threads;
    for (const Fd& fd : fds) {
      threads.emplace_back([&] { child == 0 ? send_stream(fd.get()) : receive_stream(fd.get()); });
    }
    for (auto& t : threads) t.join();
    seconds.push_back(now() - start);
  }
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return summary(std::move(seconds), kStreamBytes * streams);
}

/// A 4 KiB message to a child process and back, over and over.
Result<nlohmann::json> time_raw_round_trip() {
  CFT_ASSIGN(const Fd listener, listen_on("127.0.0.1"));
  const SocketAddress at = local_address(listener.get());
  const pid_t child = fork();
  Fd fd;
  if (child == 0) {
    CFT_ASSIGN(fd, start_connect(at));
    wait_for(fd.get(), POLLOUT);
  } else {
    wait_for(listener.get(), POLLIN);
    fd = Fd(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK));
  }
  tune_data(fd.get());
  std::vector<char> bytes(kMessage);
  const auto put = [&] { return send(fd.get(), bytes.data(), kMessage, MSG_NOSIGNAL) > 0; };
  const auto take = [&] {
    wait_for(fd.get(), POLLIN);
    return recv(fd.get(), bytes.data(), kMessage, MSG_WAITALL) > 0;
  };
  while (child == 0 && take() && put()) {
  }
  if (child == 0) _exit(0);
  std::vector<double> seconds;
  for (int run = 0; run < 5000; ++run) {
    const double start = now();
    if (!put() || !take()) return io_error("the raw round trip broke: " + errno_text(errno));
    seconds.push_back(now() - start);
  }
  fd = Fd();
  waitpid(child, nullptr, 0);
  return summary(std::move(seconds), kMessage);
}

/// Pipes between rank 0 and the others, by which they tell each other their addresses.
struct Pipes {
  int up[2], down[2];
};

/// All addresses, in the order of the ranks; each is sent as 64 bytes.
Result<std::vector<std::string>> tell_addresses(int rank, const std::string& mine,
                                                const std::vector<Pipes>& pipes) {
  const size_t ranks = pipes.size();
  std::vector<std::array<char, 64>> all(ranks);
  mine.copy(all[rank].data(), all[rank].size() - 1);
  bool ok = true;
  if (rank > 0) {
    ok = write(pipes[rank].up[1], &all[rank], 64) == 64 &&
         read(pipes[rank].down[0], all.data(), 64 * ranks) == ssize_t(64 * ranks);
  } else {
    for (size_t r = 1; r < ranks; ++r) ok &= read(pipes[r].up[0], &all[r], 64) == 64;
    for (size_t r = 1; r < ranks; ++r) {
      ok &= write(pipes[r].down[1], all.data(), 64 * ranks) == ssize_t(64 * ranks);
    }
  }
  if (!ok) return io_error("the processes lost each other: " + errno_text(errno));
  std::vector<std::string> addresses;
  for (const auto& address : all) addresses.emplace_back(address.data());
  return addresses;
}

/// One rank's part: every size in turn.
Result<nlohmann::json> run_rank(int rank, const Setting& setting, const std::vector<Pipes>& pipes) {
  GroupOptions options;
  options.rank = rank;
  options.size = setting.ranks;
  options.secret = options.generation = "a bench of the ranks";
  options.shared_memory = setting.shared_memory;
  options.encrypt = setting.encrypt;
  CFT_ASSIGN(auto group, TcpGroup::listen(options));
  CFT_ASSIGN(const auto addresses, tell_addresses(rank, group->address(), pipes));
  CFT_TRY(group->connect(addresses));
  nlohmann::json report;
  for (size_t kib : {4, 1024, 28 * 1024, 244 * 1024}) {
    CFT_ASSIGN(report[std::to_string(kib)], time_all_reduce(group.get(), kib << 10, setting));
  }
  return report;
}

Result<nlohmann::json> run_ranks(const Setting& setting) {
  std::vector<Pipes> pipes(setting.ranks);
  for (Pipes& p : pipes) {
    if (pipe(p.up) != 0 || pipe(p.down) != 0) return io_error("no pipe: " + errno_text(errno));
  }
  for (int rank = 1; rank < setting.ranks; ++rank) {
    if (fork() == 0) _exit(run_rank(rank, setting, pipes).ok() ? 0 : 1);
  }
  auto report = run_rank(0, setting, pipes);
  while (wait(nullptr) > 0) {
  }
  return report;
}

Result<nlohmann::json> run_raw() {
  nlohmann::json report;
  for (int streams : {1, 2}) {
    CFT_ASSIGN(report[std::to_string(streams) + "_streams"], time_raw(streams));
  }
  CFT_ASSIGN(report["4_KiB_round_trip"], time_raw_round_trip());
  return report;
}

Status run(std::span<char*> arguments) {
  const auto is = [&](size_t i, const char* word) {
    return i < arguments.size() && std::string(arguments[i]) == word;
  };
  const Setting setting{.ranks = arguments.size() > 1 ? std::atoi(arguments[1]) : 2,
                        .shared_memory = is(2, "shared"),
                        .encrypt = is(2, "encrypted"),
                        .wire = is(3, "bfloat16")  ? Wire::kBfloat16
                                : is(3, "float16") ? Wire::kFloat16
                                                   : Wire::kFloat32,
                        .ring = is(4, "ring")};
  CFT_ASSIGN(const auto report, is(1, "raw") ? run_raw() : run_ranks(setting));
  std::printf("%s\n", report.dump().c_str());
  return {};
}

}  // namespace
}  // namespace cafetiere

int main(int argc, char** argv) {
  const cafetiere::Status status = cafetiere::run({argv, size_t(argc)});
  if (!status.ok()) std::fprintf(stderr, "comm_bench: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
