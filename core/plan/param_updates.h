// SPDX-License-Identifier: Apache-2.0
// Parameters that are stepped within backward: their gradients need no arena of their own.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/device/program.h"

namespace cafetiere {

/// A parameter and its gradient, which becomes the program's own.
struct SteppedParam {
  size_t index;      ///< in Graph::params()
  std::string name;  ///< of its layer
  BufferId data, gradient;
};

/// Adds the steps that step the parameters by RunContext::update: of a large one as soon as no later
/// step uses it or its gradient, of all small ones in one at the end. None comes before step
/// `first_backward`, so that a pass forward alone changes nothing. Gradients that no step writes are 0.
/// Passes over rows stay whole. Where the one step that makes a large gradient can step the parameter
/// itself, it does: it is put off until no other uses the parameter, and the gradient needs no memory.
void add_param_updates(Program& program, size_t first_backward,
                       const std::vector<SteppedParam>& params);

}  // namespace cafetiere
