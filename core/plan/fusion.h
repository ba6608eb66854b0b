// SPDX-License-Identifier: Apache-2.0
// Fusion: a layer applies the next one in its own steps, such as a convolution a ReLU, or a
// normalisation the scale and shift of its channels. The next layer then has no steps.
#pragma once

#include <vector>

#include "core/plan/fold.h"

namespace cafetiere {

/// The fusion of a node.
struct Fusion {
  bool applied = false;  ///< applied by, or folded into, a node before it
  bool relu = false;     ///< applies the ReLU that follows
  int scale = -1;        ///< the node of the scale that it applies; -1: none
};

/// One entry per node. Considers only `needed` nodes; the blobs in `kept` must keep their values.
std::vector<Fusion> choose_fusions(const Graph& graph, const Folds& folds,
                                   const std::vector<bool>& needed, const std::vector<int>& kept);

}  // namespace cafetiere
