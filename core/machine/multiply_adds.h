// SPDX-License-Identifier: Apache-2.0
// Multiply-adds in registers: what bounds the arithmetic of every kernel.
#pragma once

#include <string_view>

namespace cafetiere {

/// Does some 50 microseconds' worth of independent float32 multiply-adds with the vectors of an
/// instruction set (instruction_set()), and returns how many operations that were, two each.
double multiply_adds(std::string_view set);

}  // namespace cafetiere
