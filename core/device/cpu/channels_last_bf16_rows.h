// SPDX-License-Identifier: Apache-2.0
// Source rows of convolutions with few channels, for weight gradients in bfloat16: channels are
// separated, so that the numbers that neighbouring output pixels read are neighbours.
#pragma once

#include <cstdint>

#include "core/device/cpu/convolution.h"

namespace cafetiere::channels_last_bf16 {

/// Whether the channels of the source would leave much of a tile empty.
bool has_few_channels(const ConvGeometry& g);

/// How a row is laid out: [channel][phase][place], where a phase holds every stride-th column.
struct RowLayout {
  ConvGeometry g;
  int64_t phases;  ///< the stride
  int64_t places;  ///< columns of a phase, including padding, kBeyond that may be read, and zeros

  static constexpr int64_t kBeyond = 32;

  explicit RowLayout(const ConvGeometry& g);

  /// Numbers of a row as laid out, and of a row with its padding.
  int64_t size() const { return g.channels * phases * places; }
  int64_t padded_size() const { return (places * phases + kBeyond) * g.channels; }
  /// Where the first output column's numbers are, for a kernel column of the first channel.
  int64_t begin(int64_t kernel_column) const {
    const int64_t column = kernel_column * g.dilation[1];
    return column % phases * places + column / phases;
  }
  /// Lays out a row, [column][channel]. `padded` and `to` were zeroed before the first row.
  void separate(const uint16_t* row, uint16_t* padded, uint16_t* to) const;
};

/// Copies `count` numbers, and up to 15 more.
void copy_over(const uint16_t* from, int64_t count, uint16_t* to);

}  // namespace cafetiere::channels_last_bf16
