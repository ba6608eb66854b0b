// SPDX-License-Identifier: Apache-2.0
// Several processes that train together: how each one finds the others.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "core/base/log.h"
#include "core/comm/tcp_group.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// --ranks, --rank, --meet, --server, --bind, --ports, --connection, --encrypt, --shards and --sync.
struct RankFlags {
  int ranks = 1, rank = 0, shards = 0;
  std::string meet, server, bind, ports, connection = "ethernet", sync, deepspark;
  bool encrypt = false;

  void add(CLI::App& app);
  int shard_count() const { return shards > 0 ? shards : ranks; }
  /// What --sync and --deepspark say, added to the solver's own settings.
  Status apply(caffe::SolverParameter* solver) const;
  /// The group of all ranks; null for one. They meet at --server, or in the folder --meet.
  Result<std::unique_ptr<Group>> join(const Logger& log) const;

 private:
  /// Each rank leaves its address in the folder, which all see, and waits for those of the others;
  /// rank 0 also leaves the run's secret there, readable by its user alone. The folder must not have
  /// served a run before.
  Result<std::unique_ptr<Group>> join_by_folder(GroupOptions options) const;
  Result<std::unique_ptr<Group>> join_by_server(GroupOptions options) const;
};

}  // namespace cafetiere
