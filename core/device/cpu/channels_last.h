// SPDX-License-Identifier: Apache-2.0
// What the passes of a channels-last convolution share: blocks of lanes, packed weights.
#pragma once

#include <algorithm>
#include <string>

#include "core/device/cpu/bf16_product.h"
#include "core/device/cpu/brgemm.h"
#include "core/device/cpu/convolution.h"

namespace cafetiere::channels_last {

/// Channels cut into blocks of at most 32, the height of the fastest products, as even as whole
/// vectors allow: 48 is 24 + 24. The last block may be shorter.
struct LaneBlocks {
  static constexpr int64_t kLanes = 32;
  int64_t channels, size, count;
  int64_t padded = 1;  ///< what a block's height is a multiple of

  explicit LaneBlocks(int64_t channels) : LaneBlocks(channels, 8, 1) {}
  /// Of bfloat16: sizes and heights are whole vectors of its products.
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
  /// A block's lanes and those that pad its last vector.
  int64_t height(int64_t block) const { return (lanes(block) + padded - 1) / padded * padded; }
  /// The heights of all blocks.
  int64_t heights() const { return begin(count - 1) + height(count - 1); }
};

/// Whether the source is too narrow for a product a kernel element: then unfold() makes a kernel
/// row's elements channels.
bool narrow(const ConvGeometry& g);
/// The geometry after unfold(): channels are (channel, kernel column), the kernel is one wide.
ConvGeometry unfolded(const ConvGeometry& g);
/// A step that writes src (any layout) as N H W' (C kernel_w): for each output column the elements
/// of the source row that one kernel row covers, contiguous, with zeros for the padding.
BufferId unfold(Program& p, const std::string& name, const ConvGeometry& g, TensorId src);
/// Index of element (c * kernel_w + kw, kh) of unfolded weights among an output's original ones.
inline int64_t folded(const ConvGeometry& g, int64_t row) {
  const int64_t kh = row % g.kernel[0], column = row / g.kernel[0];
  return (column / g.kernel[1] * g.kernel[0] + kh) * g.kernel[1] + column % g.kernel[1];
}

}  // namespace cafetiere::channels_last
