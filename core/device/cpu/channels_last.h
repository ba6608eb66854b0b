// SPDX-License-Identifier: Apache-2.0
// Common code of the channels-last convolution passes: blocks of lanes, packed weights.
#pragma once

#include <algorithm>
#include <string>

#include "core/device/cpu/bf16_product.h"
#include "core/device/cpu/brgemm.h"
#include "core/device/cpu/convolution.h"
#include "core/device/isa.h"

namespace cafetiere::channels_last {

/// Channels divided into blocks of at most 32, the height of the fastest products, as evenly as
/// whole vectors allow: 48 is 24 + 24 with vectors of 8, and 32 + 16 with vectors of 16. The last
/// block may be smaller.
struct LaneBlocks {
  static constexpr int64_t kLanes = 32;
  int64_t channels, size, count;
  int64_t padded = 1;  ///< block heights are multiples of this

  explicit LaneBlocks(int64_t channels)
      : LaneBlocks(channels, has_wide_vectors(instruction_set()) ? 16 : 8, 1) {}
  /// For bfloat16: sizes and heights are whole vectors of its products.
  static LaneBlocks of_bf16(int64_t channels) {
    return {channels, Bf16Product::kVector, Bf16Product::kVector};
  }
  /// With sizes of whole vectors, at most `most`, and heights that are multiples of `padded`.
  LaneBlocks(int64_t channels, int64_t vector, int64_t padded, int64_t most = kLanes)
      : channels(channels), padded(padded) {
    const int64_t fewest = (channels + most - 1) / most;
    size = std::min(channels, ((channels + fewest - 1) / fewest + vector - 1) / vector * vector);
    count = (channels + size - 1) / size;
  }
  int64_t begin(int64_t block) const { return block * size; }
  int64_t lanes(int64_t block) const { return std::min(size, channels - begin(block)); }
  /// The lanes of a block, including those that pad its last vector.
  int64_t height(int64_t block) const { return (lanes(block) + padded - 1) / padded * padded; }
  /// The sum of the heights of all blocks.
  int64_t heights() const { return begin(count - 1) + height(count - 1); }
};

/// Whether the source has too few channels for one product per kernel element: unfold() then turns
/// the elements of a kernel row into channels.
bool narrow(const ConvGeometry& g);
/// The geometry after unfold(): channels are (channel, kernel column), and the kernel has one
/// column.
ConvGeometry unfolded(const ConvGeometry& g);
/// Emits a step that writes src (in any layout) as N H W' (C kernel_w): for each output column, the
/// elements of the source row under one kernel row, contiguous, with zeros for the padding. Returns
/// its buffer.
BufferId unfold(Program& p, const std::string& name, const ConvGeometry& g, TensorId src);
/// Maps element (c * kernel_w + kw, kh) of unfolded weights to its index in an output's original
/// weights.
inline int64_t folded(const ConvGeometry& g, int64_t row) {
  const int64_t kh = row % g.kernel[0], column = row / g.kernel[0];
  return (column / g.kernel[1] * g.kernel[0] + kh) * g.kernel[1] + column % g.kernel[1];
}

}  // namespace cafetiere::channels_last
