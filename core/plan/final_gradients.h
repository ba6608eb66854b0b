// SPDX-License-Identifier: Apache-2.0
// When during backward the gradients are ready to be sent to other ranks.
#pragma once

#include <vector>

#include "core/device/program.h"

namespace cafetiere {

/// For each step of `program`: the address from which on all gradients are final once it has run;
/// null where the step adds none. `addresses` are those of the program's buffers; `gradients` those
/// of the parameters' gradients, in one arena in the order of the layers, null for a parameter
/// without one.
std::vector<const float*> final_gradients(const Program& program,
                                          const std::vector<void*>& addresses,
                                          const std::vector<float*>& gradients);

}  // namespace cafetiere
