// SPDX-License-Identifier: Apache-2.0
// AMX: whether this process may use the processor's tile registers.
#pragma once

#include <cstdint>

namespace cafetiere {

/// Whether the processor has bf16 tiles, the system saves their state, and this process has
/// permission to use them. Requests the permission once; it applies to all threads of the process.
bool amx_permitted();

/// The operand of `ldtilecfg`: all tiles have 16 rows of 64 bytes.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

}  // namespace cafetiere
