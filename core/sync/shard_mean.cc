#include "core/sync/shard_mean.h"

namespace cafetiere {

Status ShardMean::reduce(std::span<float> array) {
  const std::span<float> mine = array.subspan(begin(), end() - begin());
  CFT_TRY(exchange_.reduce(context_.group, sum_, slices_, mine));
  sum_.reset();
  const float shards = float(context_.shards);
  for (float& value : mine) value /= shards;
  return {};
}

}  // namespace cafetiere
