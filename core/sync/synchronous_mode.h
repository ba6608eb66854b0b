// SPDX-License-Identifier: Apache-2.0
// SynchronousMode: what the modes have in common whose ranks wait for each other in every round.
#pragma once

#include "core/comm/collectives.h"
#include "core/sync/sync.h"

namespace cafetiere {

/// A mode whose ranks end each round together. Unless it says otherwise, they hold the same weights
/// from then on, so that there is nothing to consolidate.
class SynchronousMode : public Sync {
 public:
  bool is_synchronous() const final { return true; }
  bool replicas_equal() const override { return true; }
  bool is_leader() const final { return rank_of(group_) == 0; }
  Status consolidate(bool, std::span<float>) override { return {}; }
  Result<std::vector<std::vector<std::byte>>> gather_at_end(std::span<const std::byte> mine) final {
    return all_gather_v(group_, mine);
  }

 protected:
  /// `group` outlives the mode; null is one rank.
  explicit SynchronousMode(Group* group) : group_(group) {}
  Group* group() const { return group_; }

 private:
  Group* const group_;
};

}  // namespace cafetiere
