// SPDX-License-Identifier: Apache-2.0
#include "core/train/immediate_update.h"

#include <array>

namespace cafetiere {

bool ImmediateUpdate::suits(const caffe::SolverParameter& solver, const UpdateRule& rule) {
  const caffe::SyncParameter& sync = solver.sync();
  return sync.mode() == "allreduce" && sync.compression() == "none" && sync.wire() == "float32" &&
         solver.iter_size() == 1 && solver.clip_gradients() < 0 && !rule.needs_norms();
}

ImmediateUpdate::ImmediateUpdate(Group* group, ArenaUpdate update, int64_t floats)
    : SynchronousMode(group), update_(std::move(update)) {
  history_.resize(size_t(update_.history_per_param()));
  for (std::vector<float>& kind : history_) kind.resize(size_t(floats), 0.F);
}

void ImmediateUpdate::apply(size_t param, int64_t begin, std::span<const float> gradient) {
  const int64_t from = update_.offset_of(param) + begin;
  std::array<std::span<float>, kMaxHistory> history;
  for (size_t kind = 0; kind < history_.size(); ++kind) {
    history[kind] = std::span(history_[kind]).subspan(size_t(from), gradient.size());
  }
  update_.apply_within(param, step_,
                       {from, from + int64_t(gradient.size()), weights_, gradient,
                        std::span(history).first(history_.size())});
}

Status ImmediateUpdate::show_state(const StateUse& use) {
  PlacedState placed;
  for (const std::vector<float>& kind : history_) {
    placed.history.push_back({{0, 0, kind.size(), kind.data()}});
  }
  return show_placed(group(), placed, use);
}

Status ImmediateUpdate::restore(ModeState& state) {
  for (size_t kind = 0; kind < std::min(history_.size(), state.kinds); ++kind) {
    CFT_TRY(state.read({StateArray::kHistory, kind}, 0, history_[kind]));
  }
  return {};
}

}  // namespace cafetiere
