// SPDX-License-Identifier: Apache-2.0
#include "cli/ranks.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "cli/rendezvous.h"
#include "cli/secret.h"
#include "core/model/file.h"
#include "core/sync/modes.h"

namespace cafetiere {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kMeetTime{60};
constexpr std::chrono::milliseconds kLook{20};
constexpr mode_t kOnlyThisUser = 0600;
constexpr const char* kThisMachine = "127.0.0.1";

/// The text of a file that another rank is going to leave.
Result<std::string> await(const fs::path& path, std::chrono::steady_clock::time_point deadline) {
  while (!fs::exists(path)) {
    if (std::chrono::steady_clock::now() > deadline) {
      return Status(
          ErrorCode::kTimeout,
          fmt::format(
              "{} did not appear within {} s: is that rank running, with the same --meet folder?",
              path.string(), kMeetTime.count()));
    }
    std::this_thread::sleep_for(kLook);
  }
  return read_file(path.string());
}

}  // namespace

void RankFlags::add(CLI::App& app) {
  app.add_option("--sync", sync,
                 fmt::format("how ranks work together: {}, or text of a SyncParameter",
                             fmt::join(sync_mode_names(), ", ")));
  app.add_option("--deepspark", deepspark, "DeepSpark parameter file; selects mode easgd");
  app.add_option("--shards", shards,
                 "number of shards of the data, each with its own batch; the weights depend on it, "
                 "not on the number of ranks (default: the number of ranks)")
      ->check(CLI::Range(1, 1 << 20));
  CLI::Option* const of_several =
      app.add_option("--ranks", ranks, "number of processes that train together (default: 1)")
          ->check(CLI::Range(1, 65536));
  app.add_option("--rank", rank, "number of this process, from 0")
      ->check(CLI::Range(0, 65535))
      ->needs(of_several);
  app.add_option("--meet", meet,
                 "new folder, visible to all ranks, in which they exchange addresses")
      ->needs(of_several);
  app.add_option(
         "--server", server,
         "HOST:PORT at which ranks without a common folder meet: the one that can listen there is "
         "rank 0, the others are numbered as they connect. Only for trusted networks: anyone who "
         "reaches the port can join")
      ->needs(of_several);
  app.add_option(
         "--bind", bind,
         "address of this machine that the other ranks connect to (default: 127.0.0.1, with "
         "--server the address that faces it)")
      ->needs(of_several);
  app.add_option("--ports", ports,
                 "range of ports to listen on, such as 40000-40100 (default: any free port)")
      ->needs(of_several);
  app.add_option("--connection", connection,
                 "between hosts: ethernet, or infiniband: UCX if all ranks find libucp.so.0, else "
                 "TCP (default: ethernet)")
      ->needs(of_several);
  app.add_flag("--encrypt", encrypt,
               "encrypt the connections between ranks (TLS 1.3); give it to all ranks or to none")
      ->needs(of_several);
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
  if (meet.empty() == server.empty()) {
    return invalid_argument(
        "--ranks needs --meet, a folder that all ranks see, or --server HOST:PORT, where they "
        "meet");
  }
  GroupOptions options;
  options.size = ranks;
  CFT_ASSIGN(options.ports, parse_ports(ports));
  CFT_ASSIGN(options.infiniband, parse_connection(connection));
  options.encrypt = encrypt;
  options.generation = "1";
  options.log = log;
  return server.empty() ? join_by_folder(std::move(options)) : join_by_server(std::move(options));
}

Result<std::unique_ptr<Group>> RankFlags::join_by_server(GroupOptions options) const {
  if (encrypt) {
    return invalid_argument(
        "--encrypt needs --meet: at --server the secret of the connections is told in the clear");
  }
  if (rank != 0) return invalid_argument("--rank needs --meet: at --server ranks are numbered");
  CFT_ASSIGN(Rendezvous meeting, Rendezvous::join(server, ranks, kMeetTime));
  options.rank = meeting.rank();
  options.bind = bind.empty() ? meeting.host() : bind;
  options.secret = meeting.secret();
  options.log.info("rank {} of {}, met at {}", meeting.rank(), ranks, server);
  CFT_ASSIGN(std::unique_ptr<TcpGroup> group, TcpGroup::listen(options));
  CFT_ASSIGN(const std::vector<std::string> addresses, meeting.exchange(group->address()));
  CFT_TRY(group->connect(addresses));
  return std::unique_ptr<Group>(std::move(group));
}

Result<std::unique_ptr<Group>> RankFlags::join_by_folder(GroupOptions options) const {
  if (rank >= ranks) {
    return invalid_argument(
        fmt::format("--rank {}: with {} ranks it must be 0 to {}", rank, ranks, ranks - 1));
  }
  const fs::path folder(meet);
  std::error_code ignored;  // what matters is whether files can be written
  fs::create_directories(folder, ignored);
  const auto address_of = [&](int r) { return folder / fmt::format("rank{}", r); };
  if (fs::exists(address_of(rank))) {
    return invalid_argument(
        fmt::format("{} exists: use a new --meet folder for each run", address_of(rank).string()));
  }
  const auto deadline = std::chrono::steady_clock::now() + kMeetTime;
  if (rank == 0) {
    CFT_ASSIGN(const std::string secret, random_secret());
    CFT_TRY(write_file(folder / "secret", secret, kOnlyThisUser));
  }
  options.rank = rank;
  options.bind = bind.empty() ? kThisMachine : bind;
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
