// SPDX-License-Identifier: Apache-2.0
#include "core/device/cpu/pool_pixels.h"

#include "core/device/cpu/plain_lanes.h"
#include "core/device/cpu/pool_pixels_rows.h"
#include "core/device/isa.h"

namespace cafetiere {
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
