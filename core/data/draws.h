// SPDX-License-Identifier: Apache-2.0
// Draws: the random numbers of one row, one after another.
#pragma once

#include <array>
#include <cstdint>

#include "core/base/philox.h"
#include "core/data/transformer.h"

namespace cafetiere {

/// A function of the key, the row's position, and how many were drawn before.
class Draws {
 public:
  Draws(uint64_t key, const RowPosition& at) {
    const auto words = Philox::block(key, {uint32_t(at.sub_step), uint32_t(at.sub_step >> 32),
                                           uint32_t(at.shard), uint32_t(at.row)});
    key_ = uint64_t{words[1]} << 32 | words[0];
  }

  /// A number in [0, 1).
  float unit() { return Philox::unit(word()); }
  /// A number in [low, high]; low if they are the wrong way round.
  float between(float low, float high) { return low < high ? low + unit() * (high - low) : low; }
  /// An index below n, n >= 1.
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
