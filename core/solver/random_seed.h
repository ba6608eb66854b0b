// SPDX-License-Identifier: Apache-2.0
// The random seed of a training run.
#pragma once

#include <cstdint>

#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// The solver's random_seed, or `given` if that is negative (Caffe then picks a seed itself).
inline uint64_t random_seed(const caffe::SolverParameter& solver, uint64_t given) {
  return solver.random_seed() >= 0 ? uint64_t(solver.random_seed()) : given;
}

}  // namespace cafetiere
