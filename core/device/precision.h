// SPDX-License-Identifier: Apache-2.0
// Precision: how a net's products are computed and its activations stored, by name.
#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"

namespace cafetiere {

enum class Precision {
  kFloat32,
  kBf16x6,    ///< float32 tensors; large products as six products of bfloat16, as exact as float32
  kBFloat16,  ///< products and activations
};

/// The precision for "float32", "bf16x6", "bf16", or where the instruction set decides: "auto" is
/// bf16 and "auto_float32" bf16x6 if the one in use is "amx", else both are float32. Fails for other
/// names.
Result<Precision> precision_of(std::string_view name);

/// "float32", "bf16x6" or "bf16".
const char* precision_name(Precision);
/// What solver states keep of it: its name, "" for float32, which Caffe's states have.
inline std::string stored_precision(Precision precision) {
  return precision == Precision::kFloat32 ? "" : precision_name(precision);
}

}  // namespace cafetiere
