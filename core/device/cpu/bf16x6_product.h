// SPDX-License-Identifier: Apache-2.0
// Products of float32 matrices as six products of bfloat16. Each number is the sum of three bfloat16
// numbers, its planes: x = x0 + x1 + x2, each the rest before it rounded to nearest, so that
// together they have float32's 24 bits. Of the nine products of planes, the six largest are added:
// x0 y2, x0 y1, x1 y1, x1 y0, x2 y0, x0 y0; the others are below float32's rounding.
//
// References: Henry, Tang, Heinecke, "Leveraging the bfloat16 artificial intelligence datatype for
// higher-precision computations", ARITH 2019 (three planes); XLA's dot algorithm BF16_BF16_F32_X6.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace cafetiere::bf16x6 {

inline constexpr int64_t kBlock = 32;  ///< lanes, and numbers along the depth, per block
inline constexpr int64_t kPlanes = 3;
inline constexpr int64_t kTile = 16 * 32;                   ///< numbers per tile
inline constexpr int64_t kBlockSize = kPlanes * 2 * kTile;  ///< numbers per block of an operand
inline constexpr int64_t blocks(int64_t size) { return (size + kBlock - 1) / kBlock; }

/// The matrix of an operand, `lanes` x `depth`; products sum along the depth.
struct Matrix {
  const float* values;
  int64_t distance;  ///< between two lanes, or two numbers along the depth
  bool deep;         ///< numbers along the depth are contiguous, not those of lanes
  int64_t lanes, depth;

  /// Numbers of its planes.
  int64_t size() const { return blocks(lanes) * blocks(depth) * kBlockSize; }
};

/// What a tile's line of 64 bytes holds: 32 numbers along the depth of a lane, or pairs of such
/// numbers of 16 lanes.
enum class Lines { kLanes, kPairs };

/// The block of a product that a call computes, rows x lanes.
struct Target {
  float* to;
  int64_t distance;  ///< between rows
  int64_t rows, lanes;
  const float* bias = nullptr;  ///< per lane, added to the sums
  bool add = false;             ///< to what `to` holds
  bool relu = false;
};

/// The implementations for an instruction set; all have the same bits.
struct Kernels {
  /// Writes the planes as [block of lanes][block of depth][plane][half][16 lines], zeros beyond the
  /// matrix, to an address of whole cache lines. Numbers below the least normal one count as 0; infinities, and numbers that bfloat16
  /// would round to one, become NaN.
  void (*split)(const Matrix&, Lines, uint16_t* to);
  /// The product of a block of lanes of two operands over `depth` blocks: rows in Lines::kLanes,
  /// lanes in Lines::kPairs. Sums of 128 numbers along the depth are added in order. Must be called
  /// within a bf16::TileScope.
  void (*multiply)(const uint16_t* rows, const uint16_t* pairs, int64_t depth, const Target&);
};

/// For the instruction set in use: with AMX, or in C++ from the definition of its instructions.
const Kernels& kernels();
const Kernels& plain_kernels();
const Kernels& amx_kernels();

}  // namespace cafetiere::bf16x6
