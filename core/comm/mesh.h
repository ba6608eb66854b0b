// SPDX-License-Identifier: Apache-2.0
// Mesh: connects every pair of ranks, even if others connect to the port meanwhile.
#pragma once

#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/base/status.h"
#include "core/comm/handshake.h"
#include "core/comm/stream.h"

namespace cafetiere {

/// The two connections to one peer; both invalid for the rank itself.
struct PeerLink {
  Stream data;
  Stream control;
  std::string address;  ///< for messages

  bool complete() const { return data.valid() && control.valid(); }
};

/// The inputs for forming a mesh.
struct MeshOptions {
  Identity self;
  int listener = -1;                   ///< non-blocking, listening
  int wake = -1;                       ///< readable once the group is cancelled
  std::vector<std::string> addresses;  ///< "host:port" of each rank
  int connect_timeout_ms = 0;
  int silence_timeout_ms = 0;  ///< for the control connections
  Logger log;
};

/// Connects to all lower ranks and accepts all higher ones. An unauthenticated connection is logged
/// and dropped; a rank that refuses this one, or is lost after authentication, is an error
/// immediately.
Result<std::vector<PeerLink>> form_mesh(const MeshOptions& options);

}  // namespace cafetiere
