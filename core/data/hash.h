// SPDX-License-Identifier: Apache-2.0
// 128-bit content hashes, which identify rows independently of where they are stored.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

namespace cafetiere {

/// 128 bits, compared as one number.
struct Hash128 {
  uint64_t high = 0;
  uint64_t low = 0;
  auto operator<=>(const Hash128&) const = default;
};

/// XXH3 of `bytes`; the same on every machine.
Hash128 hash128(std::span<const std::byte> bytes, uint64_t seed);

/// The hash of a hash, for an order that depends on the seed.
Hash128 hash128(const Hash128& value, uint64_t seed);

}  // namespace cafetiere
