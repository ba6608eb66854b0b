// SPDX-License-Identifier: Apache-2.0
// Products of bfloat16 with AMX tiles.
#include "core/device/amx.h"
#include "core/device/cpu/bf16_amx_tiles.h"

namespace cafetiere::bf16 {

#if defined(__x86_64__)
void configure_tiles() {
  const TileConfig config;
  asm volatile("ldtilecfg %0" : : "m"(config));
}

void release_tiles() { asm volatile("tilerelease"); }

void multiply_by_amx(const Bf16Product& p, const uint16_t* const* a, const uint16_t* const* b,
                     float* c, int64_t count) {
  AmxTiles tiles(p.whole_rows);
  multiply_blocks(tiles, p, a, b, c, count);
}
#else
void configure_tiles() {}
void release_tiles() {}

void multiply_by_amx(const Bf16Product& p, const uint16_t* const* a, const uint16_t* const* b,
                     float* c, int64_t count) {
  multiply_by_tiles(p, a, b, c, count);
}
#endif

}  // namespace cafetiere::bf16
