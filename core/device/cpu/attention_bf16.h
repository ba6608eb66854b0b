// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention in bfloat16: queries, keys, values and outputs, and within a tile the
// softmax's weights and gradients, are bfloat16; scores and sums are float32.
#pragma once

#include <string>

#include "core/device/device.h"

namespace cafetiere::attention_bf16 {

/// Why it does not accept a geometry: heads must be whole vectors of products.
std::string declines(const AttentionGeometry&);

/// As Device::attention() and Device::attention_backward().
void forward(Program&, const std::string& name, const AttentionGeometry&, TensorId qkv,
             TensorId dst, TensorId log_sums);
void backward(Program&, const std::string& name, const AttentionGeometry&, TensorId qkv,
              TensorId dst, TensorId log_sums, TensorId diff_dst, TensorId diff_qkv);

}  // namespace cafetiere::attention_bf16
