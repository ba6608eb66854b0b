// SPDX-License-Identifier: Apache-2.0
#include "cli/ranks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <thread>

#include "core/comm/tcp_group.h"
#include "core/model/file.h"
#include "core/sync/modes.h"

namespace cafetiere {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kMeetTime{60};
constexpr std::chrono::milliseconds kLook{20};
constexpr mode_t kOnlyThisUser = 0600;

/// The text of a file that another rank is going to leave.
Result<std::string> await(const fs::path& path, std::chrono::steady_clock::time_point deadline) {
  while (!fs::exists(path)) {
    if (std::chrono::steady_clock::now() > deadline) {
      return Status(ErrorCode::kTimeout,
                    fmt::format("{} did not appear within {} s: has that rank been started, with "
                                "the same --meet folder?",
                                path.string(), kMeetTime.count()));
    }
    std::this_thread::sleep_for(kLook);
  }
  return read_file(path.string());
}

Result<std::string> random_secret() {
  std::array<unsigned char, 32> bytes{};
  if (getentropy(bytes.data(), bytes.size()) != 0) {
    return io_error(fmt::format("no random bytes: {}", strerror(errno)));
  }
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

}  // namespace

void RankFlags::add(CLI::App& app) {
  app.add_option("--sync", sync,
                 fmt::format("how ranks work together: {}, or text of a SyncParameter",
                             fmt::join(sync_mode_names(), ", ")));
  app.add_option("--deepspark", deepspark, "a DeepSpark parameter file: mode easgd");
  app.add_option(
         "--shards", shards,
         "shards of the data, a batch each; the weights depend on them and not on the ranks "
         "(default: the ranks)")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--ranks", ranks, "processes that train together")->check(CLI::Range(1, 65536));
  app.add_option("--rank", rank, "which of them this is, from 0")->check(CLI::Range(0, 65535));
  app.add_option("--meet", meet, "a new folder that all ranks see, where they find each other");
  app.add_option("--bind", bind, "the address of this machine that the other ranks reach");
  app.add_option("--ports", ports,
                 "ports to listen on one of, as in 40000-40100 (default: any that is free)");
  app.add_option("--connection", connection,
                 "between hosts: ethernet, or infiniband: UCX if all ranks find libucp.so.0, else "
                 "TCP (default: ethernet)");
  app.add_flag("--encrypt", encrypt,
               "encrypt what travels between the ranks (TLS 1.3); all ranks say it, or none");
}

Status RankFlags::apply(caffe::SolverParameter* solver) const {
  if (!deepspark.empty()) {
    CFT_ASSIGN(const std::string text, read_file(deepspark));
    CFT_TRY(merge_deepspark(text, deepspark, solver->mutable_sync()));
  }
  return sync.empty() ? Status() : merge_sync(sync, "--sync", solver->mutable_sync());
}

Result<std::unique_ptr<Group>> RankFlags::join(const Logger& log) const {
  if (ranks == 1) return std::unique_ptr<Group>();
  if (rank >= ranks) {
    return invalid_argument(fmt::format("--rank {}: {} ranks are 0 to {}", rank, ranks, ranks - 1));
  }
  if (meet.empty()) return invalid_argument("several ranks need --meet, a folder that all see");
  const fs::path folder(meet);
  std::error_code ignored;  // what matters is whether files can be written
  fs::create_directories(folder, ignored);
  const auto address_of = [&](int r) { return folder / fmt::format("rank{}", r); };
  if (fs::exists(address_of(rank))) {
    return invalid_argument(fmt::format("{} is there: give each run a --meet folder of its own",
                                        address_of(rank).string()));
  }
  const auto deadline = std::chrono::steady_clock::now() + kMeetTime;
  if (rank == 0) {
    CFT_ASSIGN(const std::string secret, random_secret());
    CFT_TRY(write_file(folder / "secret", secret, kOnlyThisUser));
  }
  GroupOptions options;
  options.rank = rank;
  options.size = ranks;
  options.bind = bind;
  CFT_ASSIGN(options.ports, parse_ports(ports));
  CFT_ASSIGN(options.infiniband, parse_connection(connection));
  options.encrypt = encrypt;
  options.generation = "1";
  options.log = log;
  CFT_ASSIGN(options.secret, await(folder / "secret", deadline));
  CFT_ASSIGN(std::unique_ptr<TcpGroup> group, TcpGroup::listen(options));
  CFT_TRY(write_file(address_of(rank), group->address(), kOnlyThisUser));
  std::vector<std::string> addresses;
  for (int r = 0; r < ranks; ++r) {
    CFT_ASSIGN(addresses.emplace_back(), await(address_of(r), deadline));
  }
  CFT_TRY(group->connect(addresses));
  return std::unique_ptr<Group>(std::move(group));
}

}  // namespace cafetiere
