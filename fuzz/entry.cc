// SPDX-License-Identifier: Apache-2.0
// What libFuzzer calls; CFT_FUZZ_TARGET is the target of this program.
#include <cstddef>
#include <cstdint>

#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cafetiere::fuzz::CFT_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
