// SPDX-License-Identifier: Apache-2.0
// Mesh: connects every pair of ranks, whatever else connects to the port meanwhile.
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

/// What forming a mesh needs.
struct MeshOptions {
  Identity self;
  int listener = -1;                   ///< non-blocking, listening
  int wake = -1;                       ///< readable once the group is cancelled
  std::vector<std::string> addresses;  ///< "host:port" of each rank
  int connect_timeout_ms = 0;
  int silence_timeout_ms = 0;  ///< for the control connections
  Logger log;
};

/// Connects to all lower ranks, accepts all higher ones. An unauthenticated connection is logged
/// and dropped; a rank that refuses this one, or that is known and lost again, is an error at once.
Result<std::vector<PeerLink>> form_mesh(const MeshOptions& options);

}  // namespace cafetiere
