// SPDX-License-Identifier: Apache-2.0
#include "core/sync/shard_mean.h"

namespace cafetiere {

void divide_by_shards(std::span<float> sum, int shards) {
  for (float& value : sum) value /= float(shards);
}

Status ShardMean::reduce(std::span<float> array, const Exchange& exchange) {
  const std::span<float> mine = array.subspan(begin(), end() - begin());
  const Reduction reduction{sum_, slices_, mine};
  CFT_TRY(exchange.reduce(context_.group, {&reduction, 1}));
  sum_.reset();
  divide_by_shards(mine, context_.shards);
  return {};
}

}  // namespace cafetiere
