// SPDX-License-Identifier: Apache-2.0
#include "core/device/isa.h"

#include <fmt/format.h>
#include <libxsmm.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "core/device/amx.h"

namespace cafetiere {
namespace {

bool has_bf16_dots() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512bw");
#else
  return false;
#endif
}

struct InstructionSet {
  std::string_view name;
  int libxsmm_id;
  bool (*present)() = [] { return true; };  ///< in addition to libxsmm's detection
};

/// Best first. The code generated for float32 is the same for all AVX-512 sets.
constexpr InstructionSet kSets[] = {{"amx", LIBXSMM_X86_AVX512_CORE, amx_permitted},
                                    {"avx512_bf16", LIBXSMM_X86_AVX512_CORE, has_bf16_dots},
                                    {"avx512", LIBXSMM_X86_AVX512_CORE},
                                    {"avx2", LIBXSMM_X86_AVX2},
                                    {"avx", LIBXSMM_X86_AVX},
                                    {"generic", LIBXSMM_TARGET_ARCH_GENERIC}};

/// The best set that may still be used: libxsmm does not distinguish between the first ones.
std::atomic<const InstructionSet*>& best() {
  static std::atomic<const InstructionSet*> best = kSets;
  return best;
}

const InstructionSet* in_force() {
  const int id = libxsmm_get_target_archid();
  return std::find_if(best().load(), std::end(kSets) - 1, [&](const InstructionSet& set) {
    return id >= set.libxsmm_id && set.present();
  });
}

bool has_generated_code() {
  libxsmm_registry_info info;
  return libxsmm_get_registry_info(&info) == EXIT_SUCCESS && info.size > 0;
}

/// See use_instruction_set().
Status lower_to(std::string_view name) {
  const InstructionSet* now = in_force();
  const InstructionSet* wanted =
      std::find_if(std::begin(kSets), std::end(kSets),
                   [&](const InstructionSet& set) { return set.name == name; });
  if (wanted == now) return {};
  if (wanted == std::end(kSets) || wanted < now) {
    return invalid_argument(fmt::format(
        "code cannot be generated for instruction set '{}' here; use {} or an older one of amx, "
        "avx512_bf16, avx512, avx2, avx and generic",
        name, now->name));
  }
  if (wanted->libxsmm_id != now->libxsmm_id && has_generated_code()) {
    return invalid_argument(
        fmt::format("this process has generated code for {} already and cannot change to {}; "
                    "start it anew",
                    now->name, name));
  }
  best() = wanted;
  libxsmm_set_target_archid(wanted->libxsmm_id);
  return {};
}

/// Applies CAFETIERE_ISA once, on first use.
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
