// SPDX-License-Identifier: Apache-2.0
// Which ranks of a group share memory, and the links between them.
#pragma once

#include <memory>
#include <vector>

#include "core/comm/group.h"
#include "core/comm/shm_link.h"

namespace cafetiere {

/// Links to the ranks on the same host, in the same network and process namespaces, whose memory
/// the system lets this process open; null for the others. Both sides get a link or neither does.
/// Every rank must call it; one that wants no links passes wanted = false.
Result<std::vector<std::unique_ptr<ShmLink>>> share_memory(Group* group, bool wanted);

}  // namespace cafetiere
