// SPDX-License-Identifier: Apache-2.0
#include "core/data/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "core/base/philox.h"
#include "core/data/order.h"

namespace cafetiere {

Result<Sampler> Sampler::make(std::vector<int64_t> counts, int64_t batch, uint64_t seed) {
  if (batch < 1) {
    return invalid_argument(
        fmt::format("the batch size is {}; set batch_size of the data layer to 1 or more", batch));
  }
  const int64_t largest = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  if (largest < 1) return invalid_argument("there are no rows; the input must have at least one");
  if (largest > std::numeric_limits<uint32_t>::max()) {
    return invalid_argument(fmt::format("a shard has {} rows, more than {}; use more shards",
                                        largest, std::numeric_limits<uint32_t>::max()));
  }
  const int64_t batches = (largest + batch - 1) / batch;
  return Sampler(std::move(counts), batch, batches, Philox::key(seed, "sampler"));
}

Sampler::Sampler(std::vector<int64_t> counts, int64_t batch, int64_t batches_per_epoch,
                 uint64_t key)
    : counts_(std::move(counts)),
      batch_(batch),
      batches_per_epoch_(batches_per_epoch),
      key_(key),
      permutations_(counts_.size()) {}

int64_t Sampler::rows(int shard, int64_t sub_step) const {
  const int64_t start = sub_step % batches_per_epoch_ * batch_;
  return std::clamp<int64_t>(counts_[static_cast<size_t>(shard)] - start, 0, batch_);
}

int64_t Sampler::total_rows(int64_t sub_step) const {
  int64_t total = 0;
  for (int shard = 0; shard < shards(); ++shard) total += rows(shard, sub_step);
  return total;
}

std::span<const uint32_t> Sampler::batch(int shard, int64_t sub_step) {
  Permutation& permutation = permutations_[static_cast<size_t>(shard)];
  if (permutation.epoch != epoch(sub_step)) permute(shard, epoch(sub_step));
  const auto count = static_cast<size_t>(rows(shard, sub_step));
  if (count == 0) return {};
  const auto start = static_cast<size_t>(sub_step % batches_per_epoch_ * batch_);
  return std::span<const uint32_t>(permutation.order).subspan(start, count);
}

void Sampler::permute(int shard, int64_t epoch) {
  auto& [of_epoch, order] = permutations_[static_cast<size_t>(shard)];
  order.resize(static_cast<size_t>(counts_[static_cast<size_t>(shard)]));
  std::iota(order.begin(), order.end(), 0u);
  shuffle(order, key_, static_cast<uint32_t>(shard), epoch);
  of_epoch = epoch;
}

}  // namespace cafetiere
