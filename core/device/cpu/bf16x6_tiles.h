// SPDX-License-Identifier: Apache-2.0
// The kernels of bf16x6, written in terms of tile operations and of lines of 16 numbers. Included by
// a file per instruction set.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/device/cpu/bf16x6_product.h"

namespace cafetiere::bf16x6 {
namespace {

constexpr int64_t kHalf = 16;     // lanes per tile
constexpr int64_t kTogether = 4;  // blocks of depth per sum of tiles

/// Splits the 16 lines of each half block, each from two runs of numbers of the matrix, and turns
/// them if their pairs lie across it.
template <class Splitter>
void split_matrix(const Matrix& m, Lines lines, uint16_t* to) {
  const bool turned = m.deep == (lines == Lines::kPairs);
  const auto left = [](int64_t size, int64_t from) {
    return std::clamp<int64_t>(size - from, 0, kHalf);
  };
  for (int64_t lane = 0; lane < m.lanes; lane += kBlock) {
    for (int64_t d = 0; d < m.depth; d += kBlock, to += kBlockSize) {
      for (int64_t half = 0; half < 2; ++half) {
        const int64_t first = lane + half * kHalf;
        const Splitter splitter{to + half * kTile};
        for (int64_t i = 0; i < kHalf; ++i) {
          if (m.deep) {
            const bool inside = first + i < m.lanes;
            const float* const at = inside ? m.values + (first + i) * m.distance + d : m.values;
            splitter.line(i, at, inside ? left(m.depth, d) : 0, at + kHalf,
                          inside ? left(m.depth, d + kHalf) : 0);
          } else {
            const int64_t even = d + 2 * i, lanes = left(m.lanes, first);
            const float* const at = m.values + even * m.distance + first;
            splitter.pairs(i, at, even < m.depth ? lanes : 0, at + m.distance,
                           even + 1 < m.depth ? lanes : 0);
          }
        }
        for (int64_t plane = 0; turned && plane < kPlanes; ++plane) {
          Splitter::turn(to + (plane * 2 + half) * kTile);
        }
      }
    }
  }
}

/// The sums of all pairs of planes of `depth` blocks. The order keeps loads few.
template <class Tiles>
void sum_blocks(Tiles& tiles, const uint16_t* rows, const uint16_t* pairs, int64_t depth,
                float* sums) {
  const auto load_rows = [&](int64_t plane) {
    tiles.template load_rows<4>(rows + plane * 2 * kTile, kBlock, kHalf, kBlock);
    tiles.template load_rows<5>(rows + (plane * 2 + 1) * kTile, kBlock, kHalf, kBlock);
  };
  const auto load_pairs = [&](int64_t plane) {
    tiles.template load_pairs<6>(pairs + plane * 2 * kTile, kBlock, kBlock);
    tiles.template load_pairs<7>(pairs + (plane * 2 + 1) * kTile, kBlock, kBlock);
  };
  const auto multiply = [&] {
    tiles.template multiply<0, 4, 6>();
    tiles.template multiply<1, 4, 7>();
    tiles.template multiply<2, 5, 6>();
    tiles.template multiply<3, 5, 7>();
  };
  tiles.template zero<0>();
  tiles.template zero<1>();
  tiles.template zero<2>();
  tiles.template zero<3>();
  for (int64_t d = 0; d < depth; ++d, rows += kBlockSize, pairs += kBlockSize) {
    load_rows(0), load_pairs(2), multiply();
    load_pairs(1), multiply();
    load_rows(1), multiply();
    load_pairs(0), multiply();
    load_rows(2), multiply();
    load_rows(0), multiply();
  }
  tiles.template store<0>(sums, kBlock, kHalf);
  tiles.template store<1>(sums + kHalf, kBlock, kHalf);
  tiles.template store<2>(sums + kHalf * kBlock, kBlock, kHalf);
  tiles.template store<3>(sums + kHalf * kBlock + kHalf, kBlock, kHalf);
}

inline void write_row(const float* sums, const Target& t, int64_t row, int64_t lanes) {
  float* const to = t.to + row * t.distance;
  for (int64_t l = 0; l < lanes; ++l) {
    float sum = t.add ? to[l] + sums[l] : sums[l];
    if (t.bias) sum += t.bias[l];
    to[l] = t.relu ? std::max(sum, 0.F) : sum;
  }
}

template <class SumBlocks>
void multiply_block(const SumBlocks& sum, const uint16_t* rows, const uint16_t* pairs,
                    int64_t depth, const Target& to) {
  alignas(64) float total[kBlock * kBlock], some[kBlock * kBlock];
  for (int64_t d = 0; d < depth; d += kTogether) {
    sum(rows + d * kBlockSize, pairs + d * kBlockSize, std::min(kTogether, depth - d),
        d == 0 ? total : some);
    for (int64_t i = 0; d > 0 && i < kBlock * kBlock; ++i) total[i] += some[i];
  }
  for (int64_t row = 0; row < to.rows; ++row) {
    if (to.lanes == kBlock)  // known to the compiler
      write_row(total + row * kBlock, to, row, kBlock);
    else
      write_row(total + row * kBlock, to, row, to.lanes);
  }
}

}  // namespace
}  // namespace cafetiere::bf16x6
