// SPDX-License-Identifier: Apache-2.0
// The instruction set that code is generated for. It determines the order of sums, so ranks must
// agree.
#pragma once

#include <string_view>

#include "core/base/status.h"

namespace cafetiere {

/// The set in use in this process: "amx", "avx512_bf16", "avx512", "avx2", "avx" or "generic" (no
/// generated code). The first three differ only for bfloat16. By default the best set of the
/// machine, or the lower one in the environment variable CAFETIERE_ISA. All kernels that depend on
/// the processor query it here.
std::string_view instruction_set();

/// Whether a set includes AVX-512.
inline bool has_wide_vectors(std::string_view set) {
  return set == "amx" || set.starts_with("avx512");
}

/// An error if CAFETIERE_ISA names a set that is unknown or not supported here; to be checked
/// before compiling a net.
Status check_instruction_set();

/// Lowers the set in use for the rest of the process; must be called before any plan is compiled.
/// Fails for a set that is unknown or better than the current one, or if float32 code for another
/// set has already been generated: libxsmm keeps generated code.
Status use_instruction_set(std::string_view name);

}  // namespace cafetiere
