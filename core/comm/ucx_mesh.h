// SPDX-License-Identifier: Apache-2.0
// Whether a group can use UCX, and its endpoints then.
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
  Engine::Endpoints endpoints;  ///< by rank; empty where UCX is not used
  std::string why_not;          ///< for whoever asked for it, where it is not used
};

/// UCX endpoints to the ranks that `peers` has a name for, if all ranks of the group want UCX and find
/// it, and it joins them within `timeout_ms`; else none on any rank. Every rank calls it; one that
/// does not want any passes wanted = false. Afterwards nobody needs a peer's help to send.
Result<UcxMesh> join_by_ucx(Group* group, const std::vector<std::optional<UcxPeer>>& peers,
                            bool wanted, int timeout_ms);

}  // namespace cafetiere
