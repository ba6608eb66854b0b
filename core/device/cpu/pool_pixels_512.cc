// SPDX-License-Identifier: Apache-2.0
// Pooling with AVX-512: 16 numbers per vector, and masks instead of short copies.
#include <cfloat>
#include <cstdint>
#include <type_traits>

#include "core/base/targets.h"
#include "core/device/cpu/lane_chunks.h"
#include "core/device/cpu/pool_pixels.h"

#if CFT_OTHER_TARGETS
#include <immintrin.h>

// After all includes: inline functions defined there must run on any machine.
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,prefer-vector-width=512")

#include "core/device/cpu/pool_pixels_rows.h"
#include "core/device/cpu/wide_lanes.h"

namespace cafetiere {

template <class T>
PoolRows<T> wide_pool_rows() {
  return pool_rows_of<WideLanes, T>();
}

}  // namespace cafetiere

#pragma GCC pop_options
#else
namespace cafetiere {
template <class T>
PoolRows<T> wide_pool_rows() {
  return plain_pool_rows<T>();
}
}  // namespace cafetiere
#endif

namespace cafetiere {
template PoolRows<float> wide_pool_rows();
template PoolRows<uint16_t> wide_pool_rows();
}  // namespace cafetiere
