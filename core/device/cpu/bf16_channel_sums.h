// SPDX-License-Identifier: Apache-2.0
// Sums over rows of bfloat16, one a channel.
#pragma once

#include <cstdint>

namespace cafetiere::bf16 {

/// Rows of `channels` numbers that follow each other. Sixteen at a time are added in float32, and their
/// sums in double, so that all kinds of vectors give the same bits.
struct ChannelSums {
  const uint16_t* x;
  int64_t rows, channels;
  float* sums;  ///< of x, or of (x - centre)^2
  const float* centre = nullptr;
  const uint16_t* y = nullptr;  ///< then `sums` are of x, and `products` of x * (y - centre)
  float* products = nullptr;
};

using SumChannels = void (*)(const ChannelSums&);

/// Of the instruction set in force.
SumChannels sum_channels();
/// For comparisons; the second for machines that have AVX-512.
void sum_channels_plainly(const ChannelSums&);
void sum_channels_512(const ChannelSums&);

}  // namespace cafetiere::bf16
