// SPDX-License-Identifier: Apache-2.0
// What a Net takes of a process's memory.
#pragma once

#include "core/plan/net.h"

namespace cafetiere {

/// Bytes of `net` once it has run forward and backward: parameters, blobs, the gradients of both, and
/// what its layers keep between their steps. What no pass writes costs nothing and is not counted.
Result<int64_t> open_net_bytes(const Net& net);

}  // namespace cafetiere
