// SPDX-License-Identifier: Apache-2.0
// PlainLanes: portable vectors for passes that are compiled for several widths.
#pragma once

#include "core/device/cpu/lane_chunks.h"

namespace cafetiere {

struct PlainLanes {
  using V = Simd8;
  static constexpr int64_t kCount = kOctet;
  template <class T>
  static V load(const T* from, int64_t lanes) {
    return load_octet(from, lanes);
  }
  template <class T>
  static void store(T* to, const V& v, int64_t lanes) {
    store_octet(to, v, lanes);
  }
  static V multiply_add(const V& a, const V& b, const V& sums) {
    return cafetiere::multiply_add(a, b, sums);
  }
};

}  // namespace cafetiere
