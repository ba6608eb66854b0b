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

Status OuterStep::keep(Group* group, size_t floats, SyncState* state) const {
  std::vector<float>& arena = state->outer.emplace_back(floats, 0.f);
  std::ranges::copy(velocity_, arena.begin() + ptrdiff_t(begin_));
  return all_gather_slices(group, arena, even_slices(floats, size_of(group)));
}

void OuterStep::restore(const SyncState& state) {
  const SyncMode* mode = find_sync_mode(state.mode);
  const bool ours = (mode && mode->outer_step) || state.mode.starts_with("auto");
  if (!ours || state.outer.size() != 1 || state.outer[0].size() < begin_ + velocity_.size()) return;
  std::copy_n(state.outer[0].begin() + ptrdiff_t(begin_), velocity_.size(), velocity_.begin());
}

std::optional<OuterStep> outer_step_of(const caffe::SyncParameter& sync, size_t begin, size_t end,
                                       size_t learned) {
  const SyncMode* mode = find_sync_mode(sync.mode());
  if (!mode || !mode->outer_step) return {};
  return OuterStep(sync, begin, end, learned);
}

}  // namespace cafetiere
