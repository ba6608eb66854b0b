// SPDX-License-Identifier: Apache-2.0
#include "core/device/cpu/pool_pixels.h"

#include "core/device/cpu/lane_chunks.h"
#include "core/device/cpu/pool_pixels_rows.h"
#include "core/device/isa.h"

namespace cafetiere {
namespace {

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
};

}  // namespace

template <class T>
PoolRows<T> plain_pool_rows() {
  return pool_rows_of<PlainLanes, T>();
}
template PoolRows<float> plain_pool_rows();
template PoolRows<uint16_t> plain_pool_rows();

template <class T>
PoolRows<T> pool_rows() {
  return has_wide_vectors(instruction_set()) ? wide_pool_rows<T>() : plain_pool_rows<T>();
}
template PoolRows<float> pool_rows();
template PoolRows<uint16_t> pool_rows();

}  // namespace cafetiere
