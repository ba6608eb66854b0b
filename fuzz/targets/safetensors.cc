// SPDX-License-Identifier: Apache-2.0
// A .safetensors file: read, and written anew.
#include "core/model/safetensors.h"

#include "fuzz/targets.h"

void cafetiere::fuzz::safetensors(std::string_view bytes) {
  const auto weights = parse_safetensors(bytes);
  if (!weights.ok()) return;
  (void)serialize_safetensors(*weights);
}
