// SPDX-License-Identifier: Apache-2.0
// The table of modes: what each is called, promises and allows, and how it is made.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/sync/sync.h"

namespace cafetiere {

struct SyncMode {
  using Make = Result<std::unique_ptr<Sync>> (*)(const caffe::SyncParameter& sync,
                                                 const SyncContext& context,
                                                 const UpdateMaker& update);
  std::string_view name;
  std::string_view text;      ///< how the ranks work together, in a few words
  std::string_view promises;  ///< when two trainings end with the same bits
  bool survivors;             ///< ranks may come and go (TrainerOptions::survivors)
  bool rounds;                ///< a driver may call the replicas a round at a time (Rounds)
  bool compression;           ///< gradients are sent each step, and may be compressed
  bool wire;                  ///< numbers may travel with 16 bits, or round a ring
  bool outer_step;            ///< the replicas' mean goes through an OuterStep
  bool own_history;           ///< each shard has a history of its own
  /// Arrays as large as the parameters that a rank with one shard keeps beside weights, gradients and
  /// history: sums, copies, what peers send, and its part of a center if it owned all of it.
  int arrays;
  /// Shards of a rank: "any" number, an "equal" one on all ranks, or "one".
  std::string_view rank_shards = "any";
  Make make;
};

/// All modes, the default first.
std::span<const SyncMode> sync_modes();

/// The mode of that name; null where there is none.
const SyncMode* find_sync_mode(std::string_view name);

/// The names of all modes or, given a property, of those that have it.
std::vector<std::string> sync_mode_names(bool SyncMode::*property = nullptr);

}  // namespace cafetiere
