// All-reduce of two processes over loopback TCP, beside what one and two plain TCP streams reach
// in the same run. Prints JSON; a bandwidth is the array's bytes divided by the median time.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "core/comm/collectives.h"
#include "core/comm/shard_tree.h"
#include "core/comm/socket.h"
#include "core/comm/tcp_group.h"

namespace cafetiere {
namespace {

constexpr size_t kStreamBytes = size_t{256} << 20;  // of one raw measurement
constexpr size_t kStreamChunk = 256 << 10;
constexpr size_t kMessage = 4096;
constexpr auto kBudget = std::chrono::milliseconds(1500);  // for each size
constexpr int kWarmUp = 3;

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

Status all_reduce(Group* group, TreeSum* sum, std::span<float> arena,
                  std::span<const size_t> slices) {
  const int rank = group->rank();
  sum->reset();
  CFT_TRY(sum->add(arena));
  CFT_TRY(reduce_scatter(group, *sum, slices,
                         arena.subspan(slices[rank], slices[rank + 1] - slices[rank])));
  return all_gather_slices(group, arena, slices);
}

/// Times all-reduces of `bytes`. Both ranks agree before each whether there is another.
Result<nlohmann::json> time_all_reduce(Group* group, size_t bytes) {
  std::vector<float> arena(bytes / sizeof(float), 0.f);
  const auto slices = even_slices(arena.size(), group->size());
  TreeSum sum(shards_of_rank(group->rank(), group->size(), group->size()), group->size(),
              arena.size(), nullptr);
  std::vector<double> seconds;
  const double end = now() + std::chrono::duration<double>(kBudget).count();
  for (int run = 0;; ++run) {
    std::byte more{run < kWarmUp + 5 || now() < end};
    CFT_TRY(broadcast(group, 0, {&more, 1}));
    if (more == std::byte{0}) break;
    CFT_TRY(barrier(group));
    const double start = now();
    CFT_TRY(all_reduce(group, &sum, arena, slices));
    if (run >= kWarmUp) seconds.push_back(now() - start);
  }
  return summary(std::move(seconds), bytes);
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
  const Endpoint at = local_endpoint(listener.get());
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
  const Endpoint at = local_endpoint(listener.get());
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

/// Runs `body` on two connected ranks: the caller and a child process.
Result<nlohmann::json> on_two_ranks(const std::function<Result<nlohmann::json>(Group*)>& body) {
  int up[2], down[2];
  if (pipe(up) != 0 || pipe(down) != 0) return io_error("no pipe: " + errno_text(errno));
  const pid_t child = fork();
  const int rank = child == 0 ? 1 : 0;
  GroupOptions options;
  options.rank = rank;
  options.size = 2;
  options.secret = options.generation = "bench";
  CFT_ASSIGN(auto group, TcpGroup::listen(options));
  std::string mine = group->address();
  mine.resize(64);
  std::string theirs(64, '\0');
  if (write(rank == 1 ? up[1] : down[1], mine.data(), 64) != 64 ||
      read(rank == 1 ? down[0] : up[0], theirs.data(), 64) != 64) {
    return io_error("the two processes lost each other: " + errno_text(errno));
  }
  std::vector<std::string> addresses = {mine.c_str(), theirs.c_str()};
  if (rank == 1) std::swap(addresses[0], addresses[1]);
  CFT_TRY(group->connect(addresses));
  auto result = body(group.get());
  if (rank == 1) _exit(result.ok() ? 0 : 1);
  waitpid(child, nullptr, 0);
  return result;
}

Status run() {
  nlohmann::json report = {{"bench", "comm"}, {"ranks", 2}};
  for (int streams : {1, 2}) {
    CFT_ASSIGN(const auto raw, time_raw(streams));
    report["raw_loopback"][std::to_string(streams) + "_streams"] = raw;
  }
  CFT_ASSIGN(report["raw_loopback"]["4_KiB_round_trip"], time_raw_round_trip());
  CFT_ASSIGN(report["all_reduce"], on_two_ranks([](Group* group) -> Result<nlohmann::json> {
               nlohmann::json sizes;
               for (size_t kib : {4, 1024, 28 * 1024}) {
                 CFT_ASSIGN(sizes[std::to_string(kib) + "_KiB"], time_all_reduce(group, kib << 10));
               }
               return sizes;
             }));
  std::printf("%s\n", report.dump(2).c_str());
  return {};
}

}  // namespace
}  // namespace cafetiere

int main() {
  const cafetiere::Status status = cafetiere::run();
  if (!status.ok()) std::fprintf(stderr, "comm_bench: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
