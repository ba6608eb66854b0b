// SPDX-License-Identifier: Apache-2.0
// Which virtual shards a rank owns: one rule for the exchange, the rows and the tests.
#pragma once

#include <cstdint>

namespace cafetiere {

/// The shards [begin, end).
struct ShardRange {
  int begin = 0;
  int end = 0;

  int size() const { return end - begin; }
  bool operator==(const ShardRange&) const = default;
};

/// The shards of one rank, [r*V/N, (r+1)*V/N); none when there are fewer shards than ranks.
constexpr ShardRange shards_of_rank(int rank, int ranks, int shards) {
  const auto bound = [&](int r) { return static_cast<int>(int64_t{r} * shards / ranks); };
  return {bound(rank), bound(rank + 1)};
}

}  // namespace cafetiere
