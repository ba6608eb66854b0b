// SPDX-License-Identifier: Apache-2.0
// Log lines about a solver's steps, worded as in Caffe's log.
#pragma once

#include "core/base/log.h"
#include "core/solver/lr_policy.h"
#include "core/sync/sync.h"

namespace cafetiere {

/// The learning rate of an iteration; logs when a stepvalue of policy "multistep" is reached.
float rate_at(const LrPolicy& policy, const caffe::SolverParameter& solver, int iter,
              int* current_step, const Logger& log);

/// Logs the scaling of gradients by clip_gradients, if any.
void log_clipping(const Clipping& clipping, const caffe::SolverParameter& solver,
                  const Logger& log);

}  // namespace cafetiere
