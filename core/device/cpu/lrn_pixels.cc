// SPDX-License-Identifier: Apache-2.0
#include "core/device/cpu/lrn_pixels.h"

#include "core/device/cpu/lrn_pixels_rows.h"
#include "core/device/isa.h"

namespace cafetiere {

template <class T>
LrnPasses<T> plain_lrn_passes() {
  return {lrn_forward<T>, lrn_backward<T>};
}
template LrnPasses<float> plain_lrn_passes();
template LrnPasses<uint16_t> plain_lrn_passes();

template <class T>
LrnPasses<T> lrn_passes() {
  return has_wide_vectors(instruction_set()) ? wide_lrn_passes<T>() : plain_lrn_passes<T>();
}
template LrnPasses<float> lrn_passes();
template LrnPasses<uint16_t> lrn_passes();

}  // namespace cafetiere
