// SPDX-License-Identifier: Apache-2.0
// ArenaUpdate: a solver's update of an arbitrary slice of the parameter arena.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/solver/update_rule.h"

namespace cafetiere {

/// A parameter as the solver sees it: a range of floats and its update settings.
struct ParamSpan {
  int64_t offset = 0, count = 0;
  float lr_mult = 1, decay_mult = 1;
  bool statistic = false;  ///< updated as w = fraction^passes * w + "gradient" by every rule
  float fraction = 1;
};

/// The inputs of one iteration's update besides the arenas.
struct UpdateStep {
  int iter = 0;
  float rate = 0;
  float gradient_scale = 1;       ///< clipping factor times 1 / iter_size
  int passes = 1;                 ///< iter_size: the number of observations of a statistic
  std::vector<float> trust = {};  ///< per parameter; only for rules that need norms
};

/// Floats [begin, end) of the arena. `weights` is the whole arena; `gradient` and each of `history`
/// cover the slice only.
struct ArenaSlice {
  int64_t begin = 0, end = 0;
  std::span<float> weights;
  std::span<const float> gradient;
  std::span<const std::span<float>> history;
};

class ArenaUpdate {
 public:
  /// `learned`: number of floats at the front of the arena that have gradients.
  static Result<ArenaUpdate> make(const caffe::SolverParameter& solver,
                                  std::vector<ParamSpan> params, int64_t learned);

  int history_per_param() const { return rule_->history_per_param(); }
  int64_t learned() const { return learned_; }

  /// Updates a slice. The result does not depend on how the arena is sliced.
  void apply(const UpdateStep& step, const ArenaSlice& slice, ThreadPool& pool) const;

  /// Updates a slice within a single parameter, given by its index, on the calling thread.
  void apply_within(size_t param, const UpdateStep& step, const ArenaSlice& slice) const {
    apply_piece(step, {param, slice.begin, slice.end}, slice);
  }
  /// The offset of a parameter.
  int64_t offset_of(size_t param) const { return params_[param].offset; }

  /// Whether prepare() and trust_ratios() must be called before apply().
  bool needs_norms() const { return rule_->needs_norms(); }
  /// The first half of the update of a slice, which must begin at a multiple of kNormBlock. Returns
  /// the norms of its pieces in order; a piece is the part of a parameter within one block of the
  /// arena.
  std::vector<SquareNorms> prepare(const UpdateStep& step, const ArenaSlice& slice,
                                   ThreadPool& pool) const;
  /// The ratio |weights| / |step| of each parameter, by tree summation over the pieces of the whole
  /// arena; 1 where either norm is zero.
  std::vector<float> trust_ratios(std::span<const SquareNorms> pieces) const;

 private:
  struct Piece {
    size_t param;
    int64_t begin, end;
  };
  std::vector<Piece> pieces_of(int64_t begin, int64_t end) const;
  void apply_piece(const UpdateStep& step, const Piece& piece, const ArenaSlice& slice) const;
  UpdateArgs args_of(const UpdateStep& step, const Piece& piece, const ArenaSlice& slice) const;

  std::vector<ParamSpan> params_;
  std::unique_ptr<UpdateRule> rule_;
  float weight_decay_ = 0;
  bool l1_ = false;
  int64_t learned_ = 0;
};

}  // namespace cafetiere
