// SPDX-License-Identifier: Apache-2.0
// How much memory of a process a Net takes.
#pragma once

#include "core/graph/graph.h"

namespace cafetiere {

/// Bytes of a Net of `graph` once it has run forward and backward: parameters, blobs, the gradients of
/// both, and what its layers keep between their steps. What no pass writes costs nothing and is not
/// counted. No such net is created.
Result<int64_t> open_net_bytes(const Graph& graph);

}  // namespace cafetiere
