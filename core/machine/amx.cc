// SPDX-License-Identifier: Apache-2.0
#include "core/machine/amx.h"

#include <cstdint>
#include <cstring>

#include "core/device/amx.h"
#include "core/machine/crew.h"
#include "core/machine/multiply_adds.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cafetiere {
namespace {

// The instruction does 16 times the operations of an AVX-512 core's multiply-adds. Cores whose tiles are
// slow give a quarter of that.
constexpr double kFast = 8, kSlow = 5.5;

#if defined(__x86_64__)

/// A block of 32 x 32: two tiles of A, two of B, four sums.
__attribute__((target("amx-tile,amx-bf16"))) double tile_products() {
  constexpr int kSteps = 500;
  alignas(64) static thread_local uint16_t operands[4][16 * 32];
  std::memset(operands, 0x3f, sizeof operands);  // 0x3f3f: 0.75 in bf16
  const TileConfig config;
  asm volatile("" ::"r"(&config) : "memory");  // the intrinsic declares but 8 of the bytes read
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int i = 0; i < kSteps; ++i) {
    asm volatile("" ::: "memory");  // the loads declare no memory read
    _tile_loadd(4, operands[0], 64);
    _tile_loadd(5, operands[1], 64);
    _tile_loadd(6, operands[2], 64);
    _tile_loadd(7, operands[3], 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
  return 2.0 * 32 * 32 * 32 * kSteps;
}

#endif

}  // namespace

double amx_products() {
#if defined(__x86_64__)
  if (amx_permitted()) return tile_products();
#endif
  return 0;
}

std::string amx_state(double bf16, double float32) {
  if (bf16 <= 0 || float32 <= 0) return "none";
  const double ratio = bf16 / float32;
  return ratio >= kFast ? "fast" : ratio <= kSlow ? "slow" : "between";
}

AmxState look_at_amx(int threads) {
  if (!amx_permitted()) return {};
  constexpr double kSeconds = 0.001;
  std::vector<AmxState> states(static_cast<size_t>(threads));
  Crew(threads).each([&](int thread) {
    const double bf16 = Crew::best_rate(amx_products, kSeconds);
    // Every processor with AMX has AVX-512.
    const double float32 = Crew::best_rate([] { return multiply_adds("avx512"); }, kSeconds);
    states[size_t(thread)] = {bf16 / 1e9, amx_state(bf16, float32)};
  });
  return *std::ranges::min_element(states, {}, &AmxState::gflops);
}

}  // namespace cafetiere
