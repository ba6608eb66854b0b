// SPDX-License-Identifier: Apache-2.0
#include "core/device/precision.h"

#include <fmt/format.h>

#include "core/device/isa.h"

namespace cafetiere {

const char* precision_name(Precision precision) {
  switch (precision) {
    case Precision::kFloat32:
      return "float32";
    case Precision::kBf16x6:
      return "bf16x6";
    case Precision::kBFloat16:
      return "bf16";
  }
  return "?";
}

Result<Precision> precision_of(std::string_view name) {
  for (const Precision known : {Precision::kFloat32, Precision::kBf16x6, Precision::kBFloat16}) {
    if (name == precision_name(known)) return known;
  }
  const bool amx = instruction_set() == "amx";
  if (name == "auto") return amx ? Precision::kBFloat16 : Precision::kFloat32;
  if (name == "auto_float32") return amx ? Precision::kBf16x6 : Precision::kFloat32;
  return invalid_argument(
      fmt::format("precision '{}' is none of float32, bf16x6, bf16, auto and auto_float32", name));
}

}  // namespace cafetiere
