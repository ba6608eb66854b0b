#include "core/data/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "core/base/philox.h"

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

// Fisher and Yates, from the last row down; two swaps use the four words of one Philox block.
void Sampler::permute(int shard, int64_t epoch) {
  auto& [of_epoch, order] = permutations_[static_cast<size_t>(shard)];
  order.resize(static_cast<size_t>(counts_[static_cast<size_t>(shard)]));
  std::iota(order.begin(), order.end(), 0u);
  std::array<uint32_t, 4> words{};
  for (uint64_t left = order.size(), draw = 0; left > 1; --left, ++draw) {
    if (draw % 2 == 0) {
      words =
          Philox::block(key_, {static_cast<uint32_t>(draw / 2), static_cast<uint32_t>(shard),
                               static_cast<uint32_t>(epoch), static_cast<uint32_t>(epoch >> 32)});
    }
    const uint64_t random = uint64_t{words[draw % 2 * 2]} << 32 | words[draw % 2 * 2 + 1];
    // The upper half of the 128-bit product is uniform in [0, left) but for a bias of 2^-32.
    const auto pick = static_cast<uint64_t>(static_cast<unsigned __int128>(random) * left >> 64);
    std::swap(order[left - 1], order[pick]);
  }
  of_epoch = epoch;
}

}  // namespace cafetiere
