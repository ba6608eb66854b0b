// SPDX-License-Identifier: Apache-2.0
// The instruction set that code is generated for: it decides the order of sums, so ranks must agree.
#pragma once

#include <string_view>

#include "core/base/status.h"

namespace cafetiere {

/// The set in force in this process: "amx", "avx512_bf16", "avx512", "avx2", "avx" or "generic" (no code is
/// generated). The first three differ for bfloat16 alone. At first the best that the machine has, or what CAFETIERE_ISA in the environment lowers it to. All
/// kernels of the engine that choose by the processor ask here.
std::string_view instruction_set();

/// Whether a set is one of those with AVX-512.
inline bool has_wide_vectors(std::string_view set) {
  return set == "amx" || set.starts_with("avx512");
}

/// The error where CAFETIERE_ISA names a set that is unknown or that this machine lacks; for those that
/// are about to compile a net.
Status check_instruction_set();

/// Lowers the set in force, for the life of the process and before any plan is compiled in it.
/// Fails for a set that is unknown or better than the one in force, and where code for float32 of
/// another one has been generated already: libxsmm keeps what it has generated.
Status use_instruction_set(std::string_view name);

}  // namespace cafetiere
