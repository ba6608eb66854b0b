// SPDX-License-Identifier: Apache-2.0
// Draws: the sequence of random numbers of a row.
#pragma once

#include <array>
#include <cstdint>

#include "core/base/philox.h"
#include "core/data/transformer.h"

namespace cafetiere {

/// Each number is a function of the key, the row's position, and the number of earlier draws.
class Draws {
 public:
  Draws(uint64_t key, const RowPosition& at) {
    const auto words = Philox::block(key, {uint32_t(at.sub_step), uint32_t(at.sub_step >> 32),
                                           uint32_t(at.shard), uint32_t(at.row)});
    key_ = uint64_t{words[1]} << 32 | words[0];
  }

  /// A number in [0, 1).
  float unit() { return Philox::unit(word()); }
  /// A number in [low, high]; low if low >= high.
  float between(float low, float high) { return low < high ? low + unit() * (high - low) : low; }
  /// An index below n; n must be at least 1.
  uint32_t below(uint32_t n) { return Philox::below(word(), n); }
  /// True with this probability.
  bool chance(float probability) { return unit() < probability; }

 private:
  uint32_t word() {
    if (drawn_ % 4 == 0) words_ = Philox::block(key_, {uint32_t(drawn_ / 4), 0, 0, 0});
    return words_[drawn_++ % 4];
  }

  uint64_t key_ = 0;
  uint64_t drawn_ = 0;
  std::array<uint32_t, 4> words_{};
};

}  // namespace cafetiere
