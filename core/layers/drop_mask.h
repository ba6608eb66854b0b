// SPDX-License-Identifier: Apache-2.0
// DropMask: which elements a dropout layer drops. It depends only on the seed and the position: the
// sub-step, the layer's name, the row's index across all shards and the element.
#pragma once

#include <array>
#include <string>

#include "core/base/philox.h"
#include "core/device/program.h"

namespace cafetiere {

class DropMask {
 public:
  DropMask(const RunContext& run, const std::string& purpose, float ratio)
      : key_(Philox::key(run.seed, purpose)),
        step_(uint32_t(run.sub_step)),
        first_(run.first_sample),
        threshold_(uint32_t(double(ratio) * 4294967296.0)) {}

  /// Fastest for consecutive elements: each four of a row share a block of random numbers.
  bool keeps(int64_t sample, int64_t element) {
    if (sample != sample_ || element / 4 != quad_) draw(sample, element / 4);
    return bits_[size_t(element % 4)] >= threshold_;
  }

 private:
  void draw(int64_t sample, int64_t quad) {
    const auto row = uint64_t(first_ + sample);
    bits_ = Philox::block(key_, {uint32_t(quad), uint32_t(row), uint32_t(row >> 32), step_});
    sample_ = sample, quad_ = quad;
  }

  uint64_t key_;
  uint32_t step_;
  int64_t first_;
  uint32_t threshold_;
  int64_t sample_ = -1, quad_ = -1;  // the position that bits_ belongs to
  std::array<uint32_t, 4> bits_{};
};

}  // namespace cafetiere
