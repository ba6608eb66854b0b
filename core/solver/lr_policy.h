// SPDX-License-Identifier: Apache-2.0
// The learning rate of an iteration: Caffe's seven policies and cosine, each with a warm-up.
#pragma once

#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// A learning-rate policy, checked when it is made. Stateless: the step counter that multistep
/// needs belongs to the caller, who stores it with the solver's state.
class LrPolicy {
 public:
  static Result<LrPolicy> create(const caffe::SolverParameter& solver);

  /// The rate of iteration `iter`: what the policy says, in the first warmup_iter iterations times a
  /// factor that climbs in a line from warmup_start at 0 to 1. `current_step` counts the steps taken so
  /// far, 0 at the start; multistep raises it by at most one a call, so call once an iteration, in
  /// order.
  float rate(int iter, int* current_step) const;

 private:
  using RateFn = float (*)(const LrPolicy&, int iter, int* current_step);
  struct Policy;
  static std::span<const Policy> policies();

  LrPolicy(const caffe::SolverParameter& solver, RateFn rate);
  static float fixed(const LrPolicy& p, int iter, int* current_step);
  static float step(const LrPolicy& p, int iter, int* current_step);
  static float exponential(const LrPolicy& p, int iter, int* current_step);
  static float inverse(const LrPolicy& p, int iter, int* current_step);
  static float multistep(const LrPolicy& p, int iter, int* current_step);
  static float polynomial(const LrPolicy& p, int iter, int* current_step);
  static float sigmoid(const LrPolicy& p, int iter, int* current_step);
  static float cosine(const LrPolicy& p, int iter, int* current_step);

  RateFn rate_;
  float base_;
  float gamma_;
  float power_;
  int step_size_;
  int max_iter_;
  float min_rate_;
  int warmup_iter_;
  float warmup_start_;
  std::vector<int> step_values_;
};

}  // namespace cafetiere
