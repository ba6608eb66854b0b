// SPDX-License-Identifier: Apache-2.0
// Fusion: a layer applies what follows it in steps of its own, a convolution a ReLU, a normalisation the
// scale and shift of its channels. The layer that follows has no steps then.
#pragma once

#include <vector>

#include "core/plan/fold.h"

namespace cafetiere {

/// What becomes of a node.
struct Fusion {
  bool applied = false;  ///< by a node before it, or folded into that
  bool relu = false;     ///< it applies the one that follows
  int scale = -1;        ///< the node of the scale that it applies
};

/// Finds them, one a node. Only nodes that are `needed` count; the blobs in `kept` stay as they are.
std::vector<Fusion> choose_fusions(const Graph& graph, const Folds& folds,
                                   const std::vector<bool>& needed, const std::vector<int>& kept);

}  // namespace cafetiere
