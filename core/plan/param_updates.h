// SPDX-License-Identifier: Apache-2.0
// Parameter updates within backward: the gradients need no arena.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/device/program.h"

namespace cafetiere {

/// A parameter and its gradient, whose buffer becomes the program's own.
struct SteppedParam {
  size_t index;      ///< in Graph::params()
  std::string name;  ///< of its layer
  BufferId data, gradient;
};

/// Adds the steps that update the parameters through RunContext::update: one for each large
/// parameter as soon as no later step uses it or its gradient, and one for all small ones at the
/// end. None comes before step `first_backward`, so that a forward pass alone changes nothing.
/// Gradients that no step writes are 0. Row passes are not split. If a single step produces a large
/// gradient and can apply the update itself, it does: it is moved after the last use of the
/// parameter, and the gradient needs no memory.
void add_param_updates(Program& program, size_t first_backward,
                       const std::vector<SteppedParam>& params);

}  // namespace cafetiere
