// SPDX-License-Identifier: Apache-2.0
// Decides whether a group can use UCX, and creates its endpoints.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/comm/engine.h"
#include "core/comm/group.h"

namespace cafetiere {

struct UcxPeer {
  PeerName name;
  int socket;  ///< see UcxEndpoint
};

struct UcxMesh {
  Engine::Endpoints endpoints;  ///< indexed by rank; empty if UCX is not used
  std::string why_not;          ///< why UCX is not used, for the log
};

/// UCX endpoints to the ranks named in `peers`, if all ranks of the group want UCX and have it, and
/// it connects them within `timeout_ms`; otherwise none on any rank. Every rank must call it; one
/// that does not want UCX passes wanted = false. Afterwards a send needs no help from the peer.
Result<UcxMesh> join_by_ucx(Group* group, const std::vector<std::optional<UcxPeer>>& peers,
                            bool wanted, int timeout_ms);

}  // namespace cafetiere
