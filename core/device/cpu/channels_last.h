// SPDX-License-Identifier: Apache-2.0
// What the passes of a channels-last convolution share: blocks of lanes, packed weights.
#pragma once

#include <algorithm>
#include <string>

#include "core/device/cpu/convolution.h"

namespace cafetiere::channels_last {

/// Channels cut into blocks of at most 32, the height of the fastest products, as even as whole
/// vectors allow: 48 is 24 + 24. The last block may be shorter.
struct LaneBlocks {
  static constexpr int64_t kLanes = 32;
  int64_t channels, size, count;

  explicit LaneBlocks(int64_t channels) : channels(channels) {
    constexpr int64_t kVector = 8;
    const int64_t fewest = (channels + kLanes - 1) / kLanes;
    size = std::min(channels, ((channels + fewest - 1) / fewest + kVector - 1) / kVector * kVector);
    count = (channels + size - 1) / size;
  }
  int64_t begin(int64_t block) const { return block * size; }
  int64_t lanes(int64_t block) const { return std::min(size, channels - begin(block)); }
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
