// SPDX-License-Identifier: Apache-2.0
#include "core/device/precision.h"

#include <fmt/format.h>

#include "core/device/isa.h"

namespace cafetiere {

Result<Format> product_format(std::string_view precision) {
  if (precision == "float32") return Format::kFloat32;
  if (precision == "bf16") return Format::kBFloat16;
  if (precision == "auto") {
    return instruction_set() == "amx" ? Format::kBFloat16 : Format::kFloat32;
  }
  return invalid_argument(
      fmt::format("precision '{}' is none of float32, bf16 and auto", precision));
}

}  // namespace cafetiere
