// SPDX-License-Identifier: Apache-2.0
// What a Net takes of a process's memory.
#pragma once

#include "core/graph/graph.h"

namespace cafetiere {

/// Bytes of a Net of `graph` once it has run forward and backward: parameters, blobs, the gradients of
/// both, and what its layers keep between their steps. What no pass writes costs nothing and is not
/// counted. Makes no such net.
Result<int64_t> open_net_bytes(const Graph& graph);

}  // namespace cafetiere
