// SPDX-License-Identifier: Apache-2.0
// DropMask: which elements a dropout drops. It depends on nothing but the seed and the position: the
// sub-step, the layer's name, the row among all shards and the element.
#pragma once

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

  bool keeps(int64_t sample, int64_t element) const {
    const auto row = uint64_t(first_ + sample);
    const auto bits =
        Philox::block(key_, {uint32_t(element / 4), uint32_t(row), uint32_t(row >> 32), step_});
    return bits[size_t(element % 4)] >= threshold_;
  }

 private:
  uint64_t key_;
  uint32_t step_;
  int64_t first_;
  uint32_t threshold_;
};

}  // namespace cafetiere
