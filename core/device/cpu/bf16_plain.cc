// SPDX-License-Identifier: Apache-2.0
// Products of bfloat16 with AMX's tile operations in C++.
#include "core/device/cpu/bf16_plain_tiles.h"

namespace cafetiere::bf16 {
void multiply_by_tiles(const Bf16Product& p, const uint16_t* const* a, const uint16_t* const* b,
                       float* c, int64_t count) {
  const FloatMode flush(Denormals::kZero);
  PlainTiles tiles;
  multiply_blocks(tiles, p, a, b, c, count);
}

}  // namespace cafetiere::bf16
