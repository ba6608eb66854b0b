// SPDX-License-Identifier: Apache-2.0
// TcpGroup: ranks in different processes or on different machines, connected by TCP.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/comm/engine.h"
#include "core/comm/group.h"
#include "core/comm/mesh.h"
#include "core/comm/monitor.h"
#include "core/comm/socket.h"
#include "core/comm/ucx_mesh.h"

namespace cafetiere {

/// How a rank joins a group. Only `rank`, `bind`, `ports` and `log` may differ between ranks.
struct GroupOptions {
  int rank = 0;
  int size = 1;
  std::string bind = "127.0.0.1";  ///< the one address to listen on; the other ranks connect to it
  PortRange ports = {};            ///< ports to choose from for listening; default: any free port
  std::string secret;              ///< random bytes, at least kMinSecret, new for each run
  std::string generation;          ///< identifies the attempt; connections from another one are
                                   ///< refused
  int timeout_ms = 6000;           ///< silence after which a peer is considered lost
  int connect_timeout_ms = 10000;  ///< time until all ranks must be connected
  bool encrypt = false;            ///< TLS 1.3 on every connection; shared memory is not encrypted
  bool shared_memory = true;       ///< about 1 MiB per pair of ranks on one host
  bool infiniband = false;  ///< UCX between hosts if all ranks find it, else TCP; see connect()
  Logger log;
};

/// Parses the user setting for GroupOptions::infiniband: "ethernet" or "infiniband".
Result<bool> parse_connection(const std::string& text);

/// Usage: listen(), distribute address() to all ranks by any means, connect() with all addresses in
/// rank order, exchange().
class TcpGroup : public Group {
 public:
  /// Listens on a free port of the bind address, or on one of `ports`.
  static Result<std::unique_ptr<TcpGroup>> listen(GroupOptions options);
  ~TcpGroup() override;

  /// "host:port", to be sent to the other ranks.
  std::string address() const { return address_; }

  /// Replaces the secret; call before connect().
  Status set_secret(std::string secret);

  /// Connects to all ranks; returns when all are connected. Called once. If `infiniband` is
  /// requested, logs what is used: UCX on all ranks or on none. UCX neither encrypts nor
  /// authenticates, so with `encrypt` TCP is used.
  Status connect(const std::vector<std::string>& addresses);

  /// The transport to `peer`, as in Endpoint::transport(); valid once connected.
  std::string transport(int peer) const { return engine_->transport(peer); }

  int rank() const override { return options_.rank; }
  int size() const override { return options_.size; }
  Status exchange(std::span<const Send> sends, std::span<const Receive> receives) override;
  Status run(Schedule* schedule) override;
  void lend(const std::shared_ptr<const SharedMemory>& memory) override {
    if (engine_) engine_->lend(memory);
  }
  Result<PeerLinks> open_links() override;
  void cancel() override;
  Counters counters() const override;

 private:
  TcpGroup(GroupOptions options, Fd listener, Fd wake, Fd cancelled);
  MeshOptions mesh_options(const Fd& listener, const std::vector<std::string>& addresses) const;
  Status install(std::vector<PeerLink> links);
  Status share_memory();
  Status use_ucx();
  void log_transport(const UcxMesh& mesh) const;
  PeerName name(int peer) const { return {rank(), peer, links_[peer].address}; }
  Status verdict() const;
  Status close(Status why);
  Status give_up(Status why);

  GroupOptions options_;
  Fd listener_;
  Fd wake_;       // readable from close() on
  Fd cancelled_;  // readable from cancel() on
  std::string address_;
  std::vector<PeerLink> links_;
  std::vector<bool> shares_;  // whether memory is shared with each peer
  std::unique_ptr<Engine> engine_;
  std::atomic<double> seconds_{0};

  mutable std::mutex mutex_;  // guards verdict_ and the creation of engine_ and monitor_
  std::condition_variable closed_signal_;
  Status verdict_;  // why the group is closed: the first reason wins
  std::atomic<bool> closed_{false};
  std::unique_ptr<Monitor> monitor_;  // last: its thread uses all of the above
};

}  // namespace cafetiere
