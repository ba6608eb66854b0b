// SPDX-License-Identifier: Apache-2.0
// The passes over Winograd's tiles with AVX-512.
#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "core/base/targets.h"
#include "core/device/cpu/winograd_tiles.h"

#if CFT_OTHER_TARGETS
#include <immintrin.h>

// After all includes: inline functions defined there must run on any machine.
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,prefer-vector-width=512")

#include "core/device/cpu/wide_lanes.h"
#include "core/device/cpu/winograd_tiles_rows.h"

namespace cafetiere::winograd {
TilePasses wide_tile_passes(int64_t kernel) { return tile_passes_of<WideLanes>(kernel); }
}  // namespace cafetiere::winograd

#pragma GCC pop_options
#else
namespace cafetiere::winograd {
TilePasses wide_tile_passes(int64_t kernel) { return plain_tile_passes(kernel); }
}  // namespace cafetiere::winograd
#endif
