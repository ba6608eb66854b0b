// SPDX-License-Identifier: Apache-2.0
// Precision: the number format of a net's products and activations, by name.
#pragma once

#include <string_view>

#include "core/base/status.h"
#include "core/tensor/version.h"

namespace cafetiere {

/// Of "float32", "bf16" and "auto", which is bf16 where the instruction set in force is "amx" and float32
/// elsewhere. Fails for other names.
Result<Format> product_format(std::string_view precision);

}  // namespace cafetiere
