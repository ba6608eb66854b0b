// ArenaUpdate: a solver's update of any slice of the parameter arena.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/solver/update_rule.h"

namespace cafetiere {

/// A parameter as the solver sees it: a run of floats and how they are updated.
struct ParamSpan {
  int64_t offset = 0, count = 0;
  float lr_mult = 1, decay_mult = 1;
  bool statistic = false;  ///< w = fraction^passes * w + "gradient", whatever the rule
  float fraction = 1;
};

/// What one iteration's update depends on besides the arenas.
struct UpdateStep {
  int iter = 0;
  float rate = 0;
  float gradient_scale = 1;  ///< clipping times 1 / iter_size
  int passes = 1;            ///< iter_size: how often a statistic was observed
};

class ArenaUpdate {
 public:
  /// `learned`: floats at the front of the arena that have gradients.
  static Result<ArenaUpdate> make(const caffe::SolverParameter& solver,
                                  std::vector<ParamSpan> params, int64_t learned);

  int history_per_param() const { return rule_->history_per_param(); }
  int64_t learned() const { return learned_; }

  /// Updates floats [begin, end) of the arena. `weights` is the whole arena; `gradient` and each
  /// `history` are the slice alone. Independent of how the arena is cut.
  void apply(const UpdateStep& step, int64_t begin, int64_t end, std::span<float> weights,
             std::span<const float> gradient, std::span<const std::span<float>> history,
             ThreadPool& pool) const;

 private:
  void apply_piece(const UpdateStep& step, const ParamSpan& p, int64_t begin, int64_t end,
                   int64_t slice, std::span<float> weights, std::span<const float> gradient,
                   std::span<const std::span<float>> history) const;

  std::vector<ParamSpan> params_;
  std::unique_ptr<UpdateRule> rule_;
  float weight_decay_ = 0;
  bool l1_ = false;
  int64_t learned_ = 0;
};

}  // namespace cafetiere
