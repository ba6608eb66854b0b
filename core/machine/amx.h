// SPDX-License-Identifier: Apache-2.0
// AMX: how fast it is just now.
#pragma once

#include <string>

namespace cafetiere {

/// Products of bf16 tiles that are loaded from the L1 cache, as kernels do it, in operations. 0 without
/// amx_permitted().
double amx_products();

/// What a look at AMX found. On shared hosts a core's AMX has two states, which last from milliseconds to
/// minutes; float32 does not show them, so bars that concern AMX need a look before and after.
struct AmxState {
  double gflops = 0;          ///< of one thread; 0 without AMX
  std::string name = "none";  ///< "none", "fast", "slow" or "between"
};

/// A look of two milliseconds at the cores of so many threads; what the slowest of them found.
AmxState look_at_amx(int threads = 1);

/// The state that `bf16` GFLOP/s of a thread mean beside its `float32` ones.
std::string amx_state(double bf16, double float32);

}  // namespace cafetiere
