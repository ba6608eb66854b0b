// SPDX-License-Identifier: Apache-2.0
#include "core/device/cpu/winograd_tiles.h"

#include "core/device/cpu/plain_lanes.h"
#include "core/device/cpu/winograd_tiles_rows.h"
#include "core/device/isa.h"

namespace cafetiere::winograd {

TilePasses plain_tile_passes() { return tile_passes_of<PlainLanes>(); }

TilePasses tile_passes() {
  return has_wide_vectors(instruction_set()) ? wide_tile_passes() : plain_tile_passes();
}

}  // namespace cafetiere::winograd
