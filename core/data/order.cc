// SPDX-License-Identifier: Apache-2.0
#include "core/data/order.h"

#include <fmt/format.h>

#include <array>
#include <numeric>
#include <utility>

#include "core/base/philox.h"

namespace cafetiere {

// From the last value down; two swaps share the four words of a Philox block.
void shuffle(std::span<uint32_t> values, uint64_t key, uint32_t stream, int64_t epoch) {
  std::array<uint32_t, 4> words{};
  for (uint64_t left = values.size(), draw = 0; left > 1; --left, ++draw) {
    if (draw % 2 == 0) {
      words =
          Philox::block(key, {static_cast<uint32_t>(draw / 2), stream, static_cast<uint32_t>(epoch),
                              static_cast<uint32_t>(epoch >> 32)});
    }
    const uint64_t random = uint64_t{words[draw % 2 * 2]} << 32 | words[draw % 2 * 2 + 1];
    // The upper half of the 128-bit product is uniform in [0, left) up to a bias of 2^-32.
    const auto pick = static_cast<uint64_t>(static_cast<unsigned __int128>(random) * left >> 64);
    std::swap(values[left - 1], values[pick]);
  }
}

Result<int64_t> draw_skip(uint32_t rand_skip, uint64_t key, size_t images, const Logger& log) {
  if (rand_skip == 0) return int64_t{0};
  const int64_t skip = Philox::below(Philox::block(key, {})[0], rand_skip);
  log.info("Skipping first {} data points.", skip);
  if (skip < int64_t(images)) return skip;
  return invalid_argument(
      fmt::format("rand_skip chose {} images, but the list has {}; lower it", skip, images));
}

int64_t EpochOrder::at(int64_t epoch, int64_t index) {
  if (!shuffled_) return index;
  if (epoch != epoch_) {
    order_.resize(static_cast<size_t>(count_));
    std::iota(order_.begin(), order_.end(), 0u);
    shuffle(order_, key_, stream_, epoch);
    epoch_ = epoch;
  }
  return order_[static_cast<size_t>(index)];
}

}  // namespace cafetiere
