// SPDX-License-Identifier: Apache-2.0
#include "core/data/hash.h"

#include <array>

// Inlined so that its vector code is compiled with our own flags.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace cafetiere {

Hash128 hash128(std::span<const std::byte> bytes, uint64_t seed) {
  const XXH128_hash_t h = XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed);
  return {h.high64, h.low64};
}

Hash128 hash128(const Hash128& value, uint64_t seed) {
  const std::array<uint64_t, 2> words = {value.low, value.high};
  return hash128(std::as_bytes(std::span(words)), seed);
}

}  // namespace cafetiere
