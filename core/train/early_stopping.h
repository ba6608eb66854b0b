// SPDX-License-Identifier: Apache-2.0
// EarlyStopping: keeps the weights of the best test, and ends a training that no longer gets better.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"
#include "core/model/solver_state.h"

namespace cafetiere {

/// A test is better than the best so far if its value is smaller by more than the tolerance. All that it
/// says follows from the tests, so that ranks with the same tests stop at the same step.
class EarlyStopping {
 public:
  /// Of a solver; none if it does not ask for it. An error if it cannot be: without tests, or with
  /// settings out of range.
  static Result<std::optional<EarlyStopping>> make(const caffe::SolverParameter& solver);

  /// Goes on from a state that was stored. Without one, as a new training.
  void restore(const StoppingTests& tests);

  /// The output of the test net that is watched.
  const std::string& output() const { return param_.output(); }
  /// Iterations from one test to the next.
  int interval() const { return interval_; }
  /// Whether a test is due before iteration `iter`: once in each interval, also after a resume.
  bool is_due(int iter) const;
  /// Whether the weights of `iter` have been tested.
  bool is_tested(int iter) const;
  /// Takes a test of `weights`, which iteration `iter` begins with.
  void observe(int iter, double value, std::span<const float> weights);
  /// Whether the training is to end.
  bool has_stopped() const;

  /// (iteration, value) of each test, in order.
  const std::vector<std::pair<int, double>>& curve() const { return tests_.curve; }
  /// The place of the best test in the curve; -1 if there was none with a number.
  int best() const { return best_; }
  /// Its weights; empty before there is one.
  std::span<const float> best_weights() const { return tests_.best; }
  /// What a state stores.
  const StoppingTests& tests() const { return tests_; }

 private:
  explicit EarlyStopping(const caffe::SolverParameter& solver);
  bool is_better(double value) const;

  caffe::EarlyStoppingParameter param_;
  int interval_ = 0;
  bool tests_first_ = true;  // before the first iteration, too
  StoppingTests tests_;
  int best_ = -1;
};

}  // namespace cafetiere
