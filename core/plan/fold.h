// SPDX-License-Identifier: Apache-2.0
// Folding: in a net whose parameters are fixed, a layer that scales and shifts channels, such as a
// BatchNorm with running statistics, is a part of the weights and the bias of the layer before it.
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace cafetiere {

/// Which layers are folded into which.
class Folds {
 public:
  Folds() = default;
  explicit Folds(size_t nodes) : into_(nodes, -1), followers_(nodes) {}
  void add(size_t follower, size_t node) {
    into_[follower] = int(node);
    followers_[node].push_back(follower);
  }
  /// The node into which this one is folded; -1: none.
  int into(size_t node) const { return into_.empty() ? -1 : into_[node]; }
  /// The nodes that are folded into this one, in order.
  std::vector<size_t> followers(size_t node) const {
    return followers_.empty() ? std::vector<size_t>() : followers_[node];
  }

 private:
  std::vector<int> into_;
  std::vector<std::vector<size_t>> followers_;
};

/// Finds them. Only nodes that are `needed` count; the blobs in `kept` stay as they are.
Folds choose_folds(const Graph& graph, const std::vector<bool>& needed,
                   const std::vector<int>& kept);

/// Emits the steps that make the layer's parameters those of the layer and what follows it.
void fold(const ChannelAffine& follower, LoweringContext& layer);

}  // namespace cafetiere
