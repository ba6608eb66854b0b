// SPDX-License-Identifier: Apache-2.0
// AMX: whether this process may use the tiles of its processor.
#pragma once

#include <cstdint>

namespace cafetiere {

/// Whether the processor has tiles of bf16, the system keeps them, and this process was permitted to use
/// them. Asks for the permission once; it holds for all threads of the process.
bool amx_permitted();

/// What `ldtilecfg` reads: all tiles of 16 rows of 64 bytes.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

}  // namespace cafetiere
