// SPDX-License-Identifier: Apache-2.0
#include "core/device/cpu/bf16_max_pooling.h"

#include <cstring>

#include "core/device/cpu/bf16_max_pooling_rows.h"
#include "core/device/isa.h"

namespace cafetiere::bf16 {
namespace {

struct PlainMemory {
  using V = Vectors<32>;
  static V::Bits load(const uint16_t* from, int64_t lanes) {
    V::Bits v{};
    std::memcpy(&v, from, lanes == V::kLanes ? sizeof v : size_t(lanes) * sizeof(uint16_t));
    return v;
  }
  template <class Mask>
  static V::Bits load_where(Mask mask, const uint16_t* from, int64_t lanes) {
    return V::Bits(mask) & load(from, lanes);
  }
  static void store(uint16_t* to, V::Bits v, int64_t lanes) {
    std::memcpy(to, &v, lanes == V::kLanes ? sizeof v : size_t(lanes) * sizeof(uint16_t));
  }
};

}  // namespace

bool fits_max_pooling(const PoolGeometry& g) {
  constexpr int64_t kWidest = 32;  // lanes
  return g.kernel_h * g.kernel_w < kNowhere && g.kernel_h * g.in_w * kWidest <= kRowBuffer;
}

MaxPoolRows plain_max_pool_rows() { return {max_rows<PlainMemory>, backward_rows<PlainMemory>}; }

MaxPoolRows max_pool_rows() {
  return has_wide_vectors(instruction_set()) ? wide_max_pool_rows() : plain_max_pool_rows();
}

}  // namespace cafetiere::bf16
