// SPDX-License-Identifier: Apache-2.0
#include "core/device/isa.h"

#include <fmt/format.h>
#include <libxsmm.h>

#include <algorithm>
#include <cstdlib>

namespace cafetiere {
namespace {

struct InstructionSet {
  std::string_view name;
  int libxsmm_id;
};

/// Best first. Kinds of AVX-512 that differ for other types than float32 count as one.
constexpr InstructionSet kSets[] = {{"avx512", LIBXSMM_X86_AVX512_CORE},
                                    {"avx2", LIBXSMM_X86_AVX2},
                                    {"avx", LIBXSMM_X86_AVX},
                                    {"generic", LIBXSMM_TARGET_ARCH_GENERIC}};

const InstructionSet* in_force() {
  const int id = libxsmm_get_target_archid();
  return std::find_if(std::begin(kSets), std::end(kSets) - 1,
                      [&](const InstructionSet& set) { return id >= set.libxsmm_id; });
}

bool has_generated_code() {
  libxsmm_registry_info info;
  return libxsmm_get_registry_info(&info) == EXIT_SUCCESS && info.size > 0;
}

/// As use_instruction_set().
Status lower_to(std::string_view name) {
  const InstructionSet* now = in_force();
  const InstructionSet* wanted =
      std::find_if(std::begin(kSets), std::end(kSets),
                   [&](const InstructionSet& set) { return set.name == name; });
  if (wanted == now) return {};
  if (wanted == std::end(kSets) || wanted < now) {
    return invalid_argument(fmt::format(
        "code cannot be generated for instruction set '{}' here; use {} or an older one of avx512, "
        "avx2, avx and generic",
        name, now->name));
  }
  if (has_generated_code()) {
    return invalid_argument(
        fmt::format("this process has generated code for {} already and cannot change to {}; "
                    "start it anew",
                    now->name, name));
  }
  libxsmm_set_target_archid(wanted->libxsmm_id);
  return {};
}

/// Does what CAFETIERE_ISA says, once, when somebody asks first.
const Status& environment() {
  static const Status status = [] {
    const char* name = std::getenv("CAFETIERE_ISA");
    return name && *name ? lower_to(name).with_context("CAFETIERE_ISA") : Status();
  }();
  return status;
}

}  // namespace

std::string_view instruction_set() {
  (void)environment();
  return in_force()->name;
}

Status check_instruction_set() { return environment(); }

Status use_instruction_set(std::string_view name) {
  CFT_TRY(environment());
  return lower_to(name);
}

}  // namespace cafetiere
