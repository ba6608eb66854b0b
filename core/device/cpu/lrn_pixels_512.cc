// SPDX-License-Identifier: Apache-2.0
// Local response normalisation with AVX-512.
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "core/base/targets.h"
#include "core/device/cpu/lane_chunks.h"
#include "core/device/cpu/lrn_pixels.h"
#include "core/device/cpu/lrn_power.h"
#include "core/device/map.h"

#if CFT_OTHER_TARGETS
// After all includes: inline functions defined there must run on any machine.
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,prefer-vector-width=512")

#include "core/device/cpu/lrn_pixels_rows.h"

namespace cafetiere {

template <class T>
LrnPasses<T> wide_lrn_passes() {
  return {lrn_forward<T>, lrn_backward<T>};
}

}  // namespace cafetiere

#pragma GCC pop_options
#else
namespace cafetiere {
template <class T>
LrnPasses<T> wide_lrn_passes() {
  return plain_lrn_passes<T>();
}
}  // namespace cafetiere
#endif

namespace cafetiere {
template LrnPasses<float> wide_lrn_passes();
template LrnPasses<uint16_t> wide_lrn_passes();
}  // namespace cafetiere
