// SPDX-License-Identifier: Apache-2.0
#include "core/device/amx.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace cafetiere {

#if defined(__x86_64__)
namespace {

bool processor_has_tiles() {
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & kBf16) && (d & kTile);
}

/// Linux grants the use of tiles only to processes that request it.
bool ask_for_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

bool amx_permitted() {
  static const bool permitted = processor_has_tiles() && ask_for_tiles();
  return permitted;
}
#else
bool amx_permitted() { return false; }
#endif

}  // namespace cafetiere
