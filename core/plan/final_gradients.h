// SPDX-License-Identifier: Apache-2.0
// When, during backward, gradients are ready to be sent to other ranks.
#pragma once

#include <vector>

#include "core/device/program.h"

namespace cafetiere {

/// For each step of `program`, the address from which on all gradients are final once the step has
/// run; null if the step makes no more of them final. `addresses` are those of the program's
/// buffers; `gradients` those of the parameters' gradients, in one arena in layer order, null for a
/// parameter without one.
std::vector<const float*> final_gradients(const Program& program,
                                          const std::vector<void*>& addresses,
                                          const std::vector<float*>& gradients);

}  // namespace cafetiere
