// SPDX-License-Identifier: Apache-2.0
#include "core/comm/shm_mesh.h"

#include <sys/stat.h>

#include <array>
#include <cstring>
#include <fstream>

#include "core/comm/collectives.h"

namespace cafetiere {
namespace {

using Links = std::vector<std::unique_ptr<ShmLink>>;

/// What two processes must share to open each other's memory.
struct Host {
  uint64_t wanted = 0;
  std::array<char, 40> boot{};          // of the kernel
  uint64_t network = 0, processes = 0;  // namespaces

  bool shares_with(const Host& other) const {
    return wanted && boot[0] != '\0' && std::memcmp(this, &other, sizeof *this) == 0;
  }
};

uint64_t namespace_id(const char* path) {
  struct stat about {};
  return stat(path, &about) == 0 ? about.st_ino : 0;
}

Host this_host(bool wanted) {
  Host host;
  host.wanted = wanted;
  std::ifstream("/proc/sys/kernel/random/boot_id").read(host.boot.data(), host.boot.size() - 1);
  host.network = namespace_id("/proc/self/ns/net");
  host.processes = namespace_id("/proc/self/ns/pid");
  return host;
}

/// Creates the links to higher ranks of this host and sends their addresses; opens the others.
Status offer(Group* group, const std::vector<Host>& hosts, Links* links) {
  const int rank = group->rank();
  std::vector<ShmAddress> addresses(hosts.size());
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (int peer = 0; peer < group->size(); ++peer) {
    if (peer == rank || !hosts[rank].shares_with(hosts[peer])) continue;
    ShmAddress& address = addresses[peer];
    if (peer < rank) {
      receives.push_back({peer, &address, sizeof address});
      continue;
    }
    if (auto made = ShmLink::create(); made.ok()) {
      (*links)[peer] = std::move(*made);
      address = (*links)[peer]->address();
    }
    sends.push_back({peer, &address, sizeof address});
  }
  CFT_TRY(group->exchange(sends, receives));
  for (const Receive& r : receives) {
    if (auto opened = ShmLink::open(addresses[r.peer]); opened.ok()) {
      (*links)[r.peer] = std::move(*opened);
    }
  }
  return {};
}

/// Drops links that only one side could open.
Status agree(Group* group, const std::vector<Host>& hosts, Links* links) {
  const int rank = group->rank();
  std::vector<uint8_t> mine(hosts.size()), theirs(hosts.size());
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (int peer = 0; peer < group->size(); ++peer) {
    if (peer == rank || !hosts[rank].shares_with(hosts[peer])) continue;
    mine[peer] = (*links)[peer] != nullptr;
    sends.push_back({peer, &mine[peer], 1});
    receives.push_back({peer, &theirs[peer], 1});
  }
  CFT_TRY(group->exchange(sends, receives));
  for (const Receive& r : receives) {
    if (theirs[r.peer] == 0) (*links)[r.peer] = nullptr;
    if ((*links)[r.peer]) (*links)[r.peer]->drop_fd();
  }
  return {};
}

}  // namespace

Result<Links> share_memory(Group* group, bool wanted) {
  const Host host = this_host(wanted);
  std::vector<Host> hosts(group->size());
  CFT_TRY(all_gather(group, std::as_bytes(std::span(&host, 1)),
                     std::as_writable_bytes(std::span(hosts))));
  Links links(hosts.size());
  CFT_TRY(offer(group, hosts, &links));
  CFT_TRY(agree(group, hosts, &links));
  return links;
}

}  // namespace cafetiere
