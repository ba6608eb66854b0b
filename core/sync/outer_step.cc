// SPDX-License-Identifier: Apache-2.0
#include "core/sync/outer_step.h"

#include <algorithm>

#include "core/comm/collectives.h"
#include "core/comm/shard_tree.h"
#include "core/sync/modes.h"

namespace cafetiere {

OuterStep::OuterStep(const caffe::SyncParameter& sync, size_t begin, size_t end, size_t learned)
    : rate_(sync.outer_rate()),
      momentum_(sync.outer_momentum()),
      begin_(begin),
      velocity_(end - begin, 0.f),
      learned_(std::clamp(learned, begin, end) - begin) {}

void OuterStep::apply(std::span<const float> start, std::span<float> mean) {
  for (size_t i = 0; i < learned_; ++i) {
    const float move = start[i] - mean[i];
    velocity_[i] = momentum_ * velocity_[i] + move;
    mean[i] = start[i] - rate_ * (move + momentum_ * velocity_[i]);
  }
}

StateParts OuterStep::placed(const Group* group, size_t floats) const {
  const std::vector<size_t> slices = even_slices(floats, size_of(group));
  StateParts parts;
  for (int rank = 0; rank < size_of(group); ++rank) {
    parts.push_back({rank, slices[size_t(rank)], slices[size_t(rank) + 1],
                     rank == rank_of(group) ? velocity_.data() : nullptr});
  }
  return parts;
}

Status OuterStep::restore(ModeState& state) {
  const SyncMode* mode = find_sync_mode(state.mode);
  const bool ours = (mode && mode->outer_step) || state.mode.starts_with("auto");
  if (!ours || state.outer != 1) return {};
  return state.read({StateArray::kOuter}, begin_, velocity_);
}

std::optional<OuterStep> outer_step_of(const caffe::SyncParameter& sync, size_t begin, size_t end,
                                       size_t learned) {
  const SyncMode* mode = find_sync_mode(sync.mode());
  if (!mode || !mode->outer_step) return {};
  return OuterStep(sync, begin, end, learned);
}

}  // namespace cafetiere
