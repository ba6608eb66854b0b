// SPDX-License-Identifier: Apache-2.0
// Wire: the 16-bit formats in which floats may travel between ranks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cafetiere {

/// How a float travels. The formats of 16 bits halve the bytes; sums are formed in float32 anyway.
enum class Wire {
  kFloat32,   ///< as it is
  kBfloat16,  ///< the upper half of a float32: its range, 8 bits of precision
  kFloat16  ///< IEEE 754 binary16: 11 bits of precision, up to 65504; what is larger gets infinite
};

inline constexpr size_t wire_bytes(Wire wire) { return wire == Wire::kFloat32 ? 4 : 2; }

/// Rounds `count` floats to 16 bits, to the nearest and ties to even; NaN stays NaN. `wire` is one
/// of the formats of 16 bits.
void narrow(Wire wire, const float* from, size_t count, uint16_t* to);

/// The floats that narrow() made, exactly.
void widen(Wire wire, const uint16_t* from, size_t count, float* to);

/// Gives each float the value that it has after its way over the wire; nothing for kFloat32.
void round_to_wire(Wire wire, float* values, size_t count);

}  // namespace cafetiere
