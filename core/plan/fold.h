// SPDX-License-Identifier: Apache-2.0
// Folding: if the parameters of a net are fixed, a layer that scales and shifts channels, such as
// BatchNorm with running statistics, can be merged into the weights and bias of the layer before
// it.
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace cafetiere {

/// Which layers are folded into which others.
class Folds {
 public:
  Folds() = default;
  explicit Folds(size_t nodes) : into_(nodes, -1), followers_(nodes) {}
  void add(size_t follower, size_t node) {
    into_[follower] = int(node);
    followers_[node].push_back(follower);
  }
  /// The node that this one is folded into; -1: none.
  int into(size_t node) const { return into_.empty() ? -1 : into_[node]; }
  /// The nodes folded into this one, in order.
  std::vector<size_t> followers(size_t node) const {
    return followers_.empty() ? std::vector<size_t>() : followers_[node];
  }

 private:
  std::vector<int> into_;
  std::vector<std::vector<size_t>> followers_;
};

/// Considers only `needed` nodes; the blobs in `kept` must keep their values.
Folds choose_folds(const Graph& graph, const std::vector<bool>& needed,
                   const std::vector<int>& kept);

/// Emits the steps that replace the layer's parameters with those of the layer and its follower
/// combined. `shape`: of the layer's weights, its own where it shares those of another.
void fold(const ChannelAffine& follower, const Shape& shape, LoweringContext& layer);

}  // namespace cafetiere
