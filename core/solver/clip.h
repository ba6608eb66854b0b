// SPDX-License-Identifier: Apache-2.0
// The norm used to clip gradients, summed in an order that depends only on their number.
#pragma once

#include <cstddef>
#include <span>

#include "core/base/arena_block.h"

namespace cafetiere {

/// Values per block of a norm.
inline constexpr size_t kNormBlock = kArenaBlock;

/// The number of blocks of `count` values.
constexpr size_t norm_blocks(size_t count) { return (count + kNormBlock - 1) / kNormBlock; }

/// The sum of squares of at most one block, in an order that depends only on its size.
double square_sum(std::span<const float> block);

/// sums[b] = the sum of squares of block b of `values`; sums.size() == norm_blocks(values.size()).
void block_square_sums(std::span<const float> values, std::span<double> sums);

/// The sum of `terms` by a fixed tree: n terms are split at the largest power of two below n.
double tree_sum(std::span<const double> terms);

/// tree_sum() of value `which` of every shard. `values` has an equal number of values of each shard,
/// shard by shard.
double shard_sum(std::span<const double> values, int shards, int which);

/// The factor by which gradients of squared norm `norm_sq` are multiplied so that their norm is at
/// most `clip`; 1 if it already is, or if `clip` is negative (no clipping).
float clip_factor(double norm_sq, float clip);

}  // namespace cafetiere
