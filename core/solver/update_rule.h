// SPDX-License-Identifier: Apache-2.0
// UpdateRule: how a gradient changes the weights. Each rule has a file.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// The maximum number of history values per weight.
inline constexpr int kMaxHistory = 2;

/// A piece of the parameters and all inputs of its update. The spans have equal length.
struct UpdateArgs {
  std::span<float> weights;
  std::span<const float> gradient;
  std::array<std::span<float>, kMaxHistory> history;  ///< the first history_per_param() are used
  float rate = 0;                                     ///< the learning rate times lr_mult
  float decay = 0;                                    ///< weight_decay times decay_mult
  bool l1 = false;           ///< decay uses the sign of a weight instead of its value
  float gradient_scale = 1;  ///< the product of the clipping factor, 1 / iter_size and the like
  int iter = 0;              ///< iterations done before this one
  float trust = 1;           ///< rules that need norms: |weights| / |step| of the whole blob
};

/// Sums of squares of a piece of a blob: of its weights, and of the rule's proposed step.
struct SquareNorms {
  double weights = 0, step = 0;
};

/// A solver's update: scales the gradient, adds the decay, computes the change and subtracts it.
/// Apart from the norms of needs_norms(), it is element-wise, so the result does not depend on how
/// the parameters are divided into spans.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  /// History values per weight; a solver state stores all first ones, then all second ones.
  virtual int history_per_param() const = 0;

  /// Updates weights and history. Safe to call from several threads on different spans.
  virtual void apply(const UpdateArgs& args) const = 0;

  /// Whether prepare() must be called before apply(), which then expects the history to be updated
  /// and args.trust to be set from the norms of whole blobs.
  virtual bool needs_norms() const { return false; }
  /// The first half of such an update, for at most kNormBlock floats at once: updates the history,
  /// not the weights.
  virtual SquareNorms prepare(const UpdateArgs&) const { return {}; }
};

/// The rule named by `solver.type()`, with its settings checked.
Result<std::unique_ptr<UpdateRule>> make_update_rule(const caffe::SolverParameter& solver);

/// The valid values of a solver's `type`.
std::vector<std::string> update_rule_names();

/// Whether regularization_type is L1 (true) or L2 (false); any other value is an error only if
/// there is a weight decay.
Result<bool> uses_l1(const caffe::SolverParameter& solver);

}  // namespace cafetiere
