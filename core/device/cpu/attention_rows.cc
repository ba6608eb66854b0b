// SPDX-License-Identifier: Apache-2.0
#include "core/device/cpu/attention_rows.h"

#include "core/device/cpu/attention_rows_code.h"
#include "core/device/isa.h"

namespace cafetiere {

AttentionRows plain_attention_rows() { return {softmax_row, softmax_row_backward}; }

AttentionRows attention_rows() {
  return has_wide_vectors(instruction_set()) ? wide_attention_rows() : plain_attention_rows();
}

}  // namespace cafetiere
