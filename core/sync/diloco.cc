#include "core/sync/diloco.h"

#include <algorithm>

namespace cafetiere {

DiLoCo::DiLoCo(const SyncContext& context, ArenaUpdate update, const caffe::SyncParameter& sync,
               HistoryRule history)
    : Average(context, std::move(update), sync.period(), history),
      group_(context.group),
      floats_(size_t(context.floats)),
      rate_(sync.outer_rate()),
      momentum_(sync.outer_momentum()),
      velocity_(mean().end() - mean().begin(), 0.f) {}

void DiLoCo::outer_step(std::span<const float> start, std::span<float> mean) {
  const size_t begin = this->mean().begin();
  const size_t count = std::min(mean.size(), learned() - std::min(learned(), begin));
  for (size_t i = 0; i < count; ++i) {
    const float move = start[i] - mean[i];
    velocity_[i] = momentum_ * velocity_[i] + move;
    mean[i] = start[i] - rate_ * (move + momentum_ * velocity_[i]);
  }
}

Result<SyncState> DiLoCo::state() {
  CFT_ASSIGN(SyncState state, Average::state());
  state.mode = "diloco";
  std::vector<float> arena(floats_, 0.f);
  std::copy(velocity_.begin(), velocity_.end(), arena.begin() + ptrdiff_t(mean().begin()));
  CFT_TRY(all_gather_slices(group_, arena, even_slices(floats_, size_of(group_))));
  state.outer.push_back(std::move(arena));
  return state;
}

Status DiLoCo::restore(const SyncState& state) {
  CFT_TRY(Average::restore(state));
  if (state.mode != "diloco" || state.outer.size() != 1 || state.outer[0].size() != floats_) {
    return {};
  }
  std::copy_n(state.outer[0].begin() + ptrdiff_t(mean().begin()), velocity_.size(),
              velocity_.begin());
  return {};
}

}  // namespace cafetiere
