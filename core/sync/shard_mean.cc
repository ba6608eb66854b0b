// SPDX-License-Identifier: Apache-2.0
#include "core/sync/shard_mean.h"

namespace cafetiere {

Status ShardMean::reduce(std::span<float> array) {
  const std::span<float> mine = array.subspan(begin(), end() - begin());
  const Reduction reduction{sum_, slices_, mine};
  CFT_TRY(exchange_.reduce(context_.group, {&reduction, 1}));
  sum_.reset();
  const float shards = float(context_.shards);
  for (float& value : mine) value /= shards;
  return {};
}

}  // namespace cafetiere
