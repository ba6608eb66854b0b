// SPDX-License-Identifier: Apache-2.0
// When, in the course of backward, the gradients are ready to be sent to other ranks.
#pragma once

#include <vector>

#include "core/device/program.h"

namespace cafetiere {

/// For each step of `program`: once it has run, the gradients at this address and all behind it are
/// final; null where they are no more than before. `addresses` are those of the program's buffers;
/// `gradients`: where the parameters' lie, in one arena in the order of the layers, null for a
/// parameter without one.
std::vector<const float*> final_gradients(const Program& program,
                                          const std::vector<void*>& addresses,
                                          const std::vector<float*>& gradients);

}  // namespace cafetiere
