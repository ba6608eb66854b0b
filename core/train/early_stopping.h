// SPDX-License-Identifier: Apache-2.0
// EarlyStopping: keeps the weights of the best test, and ends training when tests stop improving.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"
#include "core/model/solver_state.h"

namespace cafetiere {

/// A test improves on the best so far if its value is smaller by more than the tolerance. All
/// decisions depend on the tests alone, so ranks with equal tests stop at the same step.
class EarlyStopping {
 public:
  /// From a solver; empty if it does not ask for early stopping. An error if it asks but has no
  /// tests, or if settings are out of range.
  static Result<std::optional<EarlyStopping>> make(const caffe::SolverParameter& solver);

  /// Resumes from a stored state; if it holds no tests, starts as a new training run.
  void restore(const StoppingTests& tests);

  /// The name of the watched output of the test net.
  const std::string& output() const { return param_.output(); }
  /// Iterations between tests.
  int interval() const { return interval_; }
  /// Whether a test is due before iteration `iter`: once per interval, also after a resume.
  bool is_due(int iter) const;
  /// Whether the weights at the start of iteration `iter` have been tested.
  bool is_tested(int iter) const;
  /// Records a test of `weights`, those at the start of iteration `iter`.
  void observe(int iter, double value, std::span<const float> weights);
  /// Whether training should end.
  bool has_stopped() const;

  /// (iteration, value) of each test, in order.
  const std::vector<std::pair<int, double>>& curve() const { return tests_.curve; }
  /// The index of the best test in the curve; -1 if there was none, or all values were NaN.
  int best() const { return best_; }
  /// The weights of the best test; empty if there is none.
  std::span<const float> best_weights() const { return tests_.best; }
  /// The part of it that a state stores.
  const StoppingTests& tests() const { return tests_; }

 private:
  explicit EarlyStopping(const caffe::SolverParameter& solver);
  bool is_better(double value) const;

  caffe::EarlyStoppingParameter param_;
  int interval_ = 0;
  bool tests_first_ = true;  // a test is due before the first iteration, too
  StoppingTests tests_;
  int best_ = -1;
};

}  // namespace cafetiere
