// SPDX-License-Identifier: Apache-2.0
// The memory that a Net needs.
#pragma once

#include "core/graph/graph.h"

namespace cafetiere {

/// Bytes that a Net of `graph` takes after a forward and a backward pass: parameters, blobs, the
/// gradients of both, and buffers within layers. Memory that no pass writes is never committed and
/// is not counted. Does not create the net.
Result<int64_t> open_net_bytes(const Graph& graph);

}  // namespace cafetiere
