// SPDX-License-Identifier: Apache-2.0
// The learning rate of an iteration: Caffe's seven policies and cosine, all with optional warm-up.
#pragma once

#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// A learning-rate policy, validated on creation. Stateless: the step counter of multistep belongs
/// to the caller, who stores it in the solver state.
class LrPolicy {
 public:
  static Result<LrPolicy> create(const caffe::SolverParameter& solver);

  /// The rate of iteration `iter`: that of the policy, multiplied in the first warmup_iter
  /// iterations by a factor that rises linearly from warmup_start at 0 to 1. `current_step` counts
  /// the steps so far and starts at 0; multistep increments it by at most one per call, so call
  /// once per iteration, in order.
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
