// SPDX-License-Identifier: Apache-2.0
// The seed of a training.
#pragma once

#include <cstdint>

#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// The solver's random_seed, or `given` where that is negative (Caffe: a seed of its own choice).
inline uint64_t random_seed(const caffe::SolverParameter& solver, uint64_t given) {
  return solver.random_seed() >= 0 ? uint64_t(solver.random_seed()) : given;
}

}  // namespace cafetiere
