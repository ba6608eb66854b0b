// SPDX-License-Identifier: Apache-2.0
// Sums over rows of bfloat16, one per channel.
#pragma once

#include <cstdint>

namespace cafetiere::bf16 {

/// Consecutive rows of `channels` numbers. Sixteen rows at a time are added in float32, and their
/// sums in double, so that all vector widths give bitwise the same results.
struct ChannelSums {
  const uint16_t* x;
  int64_t rows, channels;
  float* sums;  ///< of x, or of (x - centre)^2
  const float* centre = nullptr;
  const uint16_t* y = nullptr;  ///< if set, `sums` are of x, and `products` of x * (y - centre)
  float* products = nullptr;
};

using SumChannels = void (*)(const ChannelSums&);

/// The implementation for the instruction set in use.
SumChannels sum_channels();
/// For comparison; the second one requires AVX-512.
void sum_channels_plainly(const ChannelSums&);
void sum_channels_512(const ChannelSums&);

}  // namespace cafetiere::bf16
