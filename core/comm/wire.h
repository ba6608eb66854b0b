// SPDX-License-Identifier: Apache-2.0
// Wire: the formats, 32-bit or 16-bit, in which floats are sent between ranks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cafetiere {

/// The format in which a float is sent. 16-bit formats halve the bytes; sums are always in float32.
enum class Wire {
  kFloat32,   ///< unchanged
  kBfloat16,  ///< the upper half of a float32: its range, 8 bits of precision
  kFloat16  ///< IEEE 754 binary16: 11 bits of precision, up to 65504; larger values become infinite
};

inline constexpr size_t wire_bytes(Wire wire) { return wire == Wire::kFloat32 ? 4 : 2; }

/// Rounds `count` floats to 16 bits, to nearest, ties to even; NaN stays NaN. `wire` must be one of
/// the 16-bit formats.
void narrow(Wire wire, const float* from, size_t count, uint16_t* to);

/// Converts the output of narrow() to floats, exactly.
void widen(Wire wire, const uint16_t* from, size_t count, float* to);

/// Rounds each float as narrow() and widen() would; does nothing for kFloat32.
void round_to_wire(Wire wire, float* values, size_t count);

}  // namespace cafetiere
