// SPDX-License-Identifier: Apache-2.0
// Philox: random numbers as a pure function of a key and a counter.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace cafetiere {

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). No state:
/// whoever asks for a number at (seed, step, sample, ...) gets the same one, on any thread or rank.
struct Philox {
  /// Four independent 32-bit words for this key and counter.
  static constexpr std::array<uint32_t, 4> block(uint64_t key, std::array<uint32_t, 4> counter) {
    uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53} * counter[0];
      const uint64_t p1 = uint64_t{0xCD9E8D57} * counter[2];
      counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ k0, static_cast<uint32_t>(p1),
                 static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ k1, static_cast<uint32_t>(p0)};
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    return counter;
  }

  /// A key for one purpose ("sampler", "dropout", ...), so that two uses of the same seed and
  /// counter never see the same numbers.
  static constexpr uint64_t key(uint64_t seed, std::string_view purpose) {
    uint64_t name = 0xCBF29CE484222325;  // FNV-1a
    for (char c : purpose) name = (name ^ static_cast<unsigned char>(c)) * 0x100000001B3;
    const auto words =
        block(seed, {static_cast<uint32_t>(name), static_cast<uint32_t>(name >> 32), 0, 0});
    return uint64_t{words[1]} << 32 | words[0];
  }

  /// A word as an index in [0, n), n >= 1. The bias, n / 2^32, does not matter for small n.
  static constexpr uint32_t below(uint32_t word, uint32_t n) {
    return static_cast<uint32_t>(uint64_t{word} * n >> 32);
  }

  /// A word as a number in [0, 1) with 24 bits, every value a float.
  static constexpr float unit(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }
};

}  // namespace cafetiere
