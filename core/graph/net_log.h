// SPDX-License-Identifier: Apache-2.0
// The log of a net's construction, in Caffe's wording.
#pragma once

#include "core/base/log.h"
#include "core/graph/graph.h"

namespace cafetiere {

/// Logs how `graph` was built from `net`: the rules that excluded layers, the filtered net, each
/// layer with its blobs, shapes and loss weights, the layers that need a gradient, and the outputs.
void log_net(const NetText& net, const caffe::NetState& state, const Graph& graph,
             const Logger& log);

}  // namespace cafetiere
