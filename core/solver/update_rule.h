// SPDX-License-Identifier: Apache-2.0
// UpdateRule: how a gradient changes the weights. One file a rule.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// The most history values that a rule keeps for one weight.
inline constexpr int kMaxHistory = 2;

/// A piece of the parameters, and all that its update depends on. The spans are equally long.
struct UpdateArgs {
  std::span<float> weights;
  std::span<const float> gradient;
  std::array<std::span<float>, kMaxHistory> history;  ///< the first history_per_param() are used
  float rate = 0;                                     ///< the learning rate times lr_mult
  float decay = 0;                                    ///< weight_decay times decay_mult
  bool l1 = false;           ///< decay pulls by the sign of a weight instead of its value
  float gradient_scale = 1;  ///< clipping factor, 1 / iter_size and the like in one number
  int iter = 0;              ///< iterations done before this one
  float trust = 1;           ///< of rules that need norms: |weights| / |step| of the whole blob
};

/// Sums of squares of a piece of a blob: of its weights, and of the step that a rule proposes.
struct SquareNorms {
  double weights = 0, step = 0;
};

/// A solver's update: scale the gradient, add the decay, work out the change, subtract it. But for
/// the norms of needs_norms(), purely element by element, so that the result does not depend on how
/// the parameters are cut into spans.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  /// History values a weight has; a solver state holds all first ones, then all second ones.
  virtual int history_per_param() const = 0;

  /// Updates weights and history. Safe to call from several threads on different spans.
  virtual void apply(const UpdateArgs& args) const = 0;

  /// Whether prepare() comes before apply(), which then finds the history updated and args.trust set
  /// from the norms of whole blobs.
  virtual bool needs_norms() const { return false; }
  /// The first half of such an update, for at most kNormBlock floats at once: updates the history,
  /// leaves the weights.
  virtual SquareNorms prepare(const UpdateArgs&) const { return {}; }
};

/// The rule that `solver.type()` names, with its settings checked.
Result<std::unique_ptr<UpdateRule>> make_update_rule(const caffe::SolverParameter& solver);

/// The names that `type` of a solver can have.
std::vector<std::string> update_rule_names();

/// Whether regularization_type is L1 (true) or L2 (false); another one is an error only where
/// there is a weight decay.
Result<bool> uses_l1(const caffe::SolverParameter& solver);

}  // namespace cafetiere
