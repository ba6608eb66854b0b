// SPDX-License-Identifier: Apache-2.0
#include "core/train/solver_log.h"

namespace cafetiere {

float rate_at(const LrPolicy& policy, const caffe::SolverParameter& solver, int iter,
              int* current_step, const Logger& log) {
  const int before = *current_step;
  const float rate = policy.rate(iter, current_step);
  if (solver.lr_policy() == "multistep" && *current_step != before) {
    log.info("MultiStep Status: Iteration {}, step = {}", iter, *current_step);
  }
  return rate;
}

void log_clipping(const Clipping& clipping, const caffe::SolverParameter& solver,
                  const Logger& log) {
  if (clipping.factor >= 1) return;
  log.info("Gradient clipping: scaling down gradients (L2 norm {:g} > {:g}) by scale factor {:g}",
           clipping.norm, solver.clip_gradients(), clipping.factor);
}

}  // namespace cafetiere
