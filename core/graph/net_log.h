// SPDX-License-Identifier: Apache-2.0
// What is logged of a net while it is built, in Caffe's wording.
#pragma once

#include "core/base/log.h"
#include "core/graph/graph.h"

namespace cafetiere {

/// Logs how `graph` came out of `net`: the rules that did not hold, the filtered text, each layer
/// with its blobs, shapes and loss weights, which layers need a gradient, and the outputs.
void log_net(const NetText& net, const caffe::NetState& state, const Graph& graph,
             const Logger& log);

}  // namespace cafetiere
