// SPDX-License-Identifier: Apache-2.0
#include "core/sync/diloco.h"

#include <algorithm>

namespace cafetiere {

DiLoCo::DiLoCo(const SyncContext& context, ArenaUpdate update, const caffe::SyncParameter& sync,
               HistoryRule history, Exchange exchange)
    : Average(context, std::move(update), sync.period(), history, exchange),
      group_(context.group),
      floats_(size_t(context.floats)),
      outer_(sync.outer_rate(), sync.outer_momentum(), mean().end() - mean().begin()) {}

void DiLoCo::outer_step(std::span<const float> start, std::span<float> mean) {
  const size_t begin = this->mean().begin();
  outer_.apply(start, mean, std::min(mean.size(), learned() - std::min(learned(), begin)));
}

Result<SyncState> DiLoCo::state() {
  CFT_ASSIGN(SyncState state, Average::state());
  state.mode = "diloco";
  std::vector<float> arena(floats_, 0.f);
  std::copy(outer_.velocity().begin(), outer_.velocity().end(),
            arena.begin() + ptrdiff_t(mean().begin()));
  CFT_TRY(all_gather_slices(group_, arena, even_slices(floats_, size_of(group_))));
  state.outer.push_back(std::move(arena));
  return state;
}

Status DiLoCo::restore(const SyncState& state) {
  CFT_TRY(Average::restore(state));
  const bool own = state.mode == "diloco" || state.mode.starts_with("auto");
  if (!own || state.outer.size() != 1 || state.outer[0].size() != floats_) return {};
  std::copy_n(state.outer[0].begin() + ptrdiff_t(mean().begin()), outer_.velocity().size(),
              outer_.velocity().begin());
  return {};
}

}  // namespace cafetiere
