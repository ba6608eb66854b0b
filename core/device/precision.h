// SPDX-License-Identifier: Apache-2.0
// Precision: the number format of a net's products and activations, by name.
#pragma once

#include <string_view>

#include "core/base/status.h"
#include "core/tensor/version.h"

namespace cafetiere {

/// The format for "float32", "bf16" or "auto", which is bf16 if the instruction set in use is
/// "amx", else float32. Fails for other names.
Result<Format> product_format(std::string_view precision);

}  // namespace cafetiere
