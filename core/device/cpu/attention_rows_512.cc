// SPDX-License-Identifier: Apache-2.0
// The softmax of attention with AVX-512.
#include <algorithm>
#include <array>
#include <cstdint>

#include "core/base/targets.h"
#include "core/device/cpu/attention_rows.h"
#include "core/device/vector_math.h"

#if CFT_OTHER_TARGETS
// After all includes: inline functions defined there must run on any machine.
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,prefer-vector-width=512")

#include "core/device/cpu/attention_rows_code.h"

namespace cafetiere {

AttentionRows wide_attention_rows() { return {softmax_row, softmax_row_backward}; }

}  // namespace cafetiere

#pragma GCC pop_options
#else
namespace cafetiere {
AttentionRows wide_attention_rows() { return plain_attention_rows(); }
}  // namespace cafetiere
#endif
