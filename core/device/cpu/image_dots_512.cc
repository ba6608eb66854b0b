// SPDX-License-Identifier: Apache-2.0
// Dot products over images with AVX-512.
#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "core/base/targets.h"
#include "core/device/cpu/image_dots.h"

#if CFT_OTHER_TARGETS
#include <immintrin.h>

// After all includes: inline functions defined there must run on any machine.
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,prefer-vector-width=512")

#include "core/device/cpu/image_dots_rows.h"
#include "core/device/cpu/wide_lanes.h"

namespace cafetiere::image_dots {
AddRun wide_add_run() { return add_run_of<WideLanes>; }
}  // namespace cafetiere::image_dots

#pragma GCC pop_options
#else
namespace cafetiere::image_dots {
AddRun wide_add_run() { return plain_add_run(); }
}  // namespace cafetiere::image_dots
#endif
