// SPDX-License-Identifier: Apache-2.0
// What several targets share: a small net to load weights into, and a way to try a graph out.
#pragma once

#include "core/graph/graph.h"

namespace cafetiere::fuzz {

/// The graph of a net for one phase.
Result<Graph> build_graph(const NetText& net, caffe::Phase phase);

/// A LeNet of 70 weights.
Result<Graph> small_lenet();

/// Plans a graph and runs it once, forward and backward where something learns. Graphs that are
/// large, or write files, are left alone.
void try_out(const Graph& graph);

}  // namespace cafetiere::fuzz
