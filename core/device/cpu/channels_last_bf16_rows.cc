// SPDX-License-Identifier: Apache-2.0
#include "core/device/cpu/channels_last_bf16_rows.h"

#include <algorithm>
#include <cstring>

#include "core/device/cpu/bf16_pack.h"
#include "core/device/cpu/bf16_tiles.h"
#include "core/device/cpu/whole_pieces.h"

namespace cafetiere::channels_last_bf16 {
namespace {

template <int64_t kNumbers>
void copy_vector(const uint16_t* from, uint16_t* to) {
  uint16_t __attribute__((vector_size(2 * kNumbers))) numbers;
  std::memcpy(&numbers, from, sizeof numbers);
  std::memcpy(to, &numbers, sizeof numbers);
}

}  // namespace

bool has_few_channels(const ConvGeometry& g) {
  constexpr int64_t kMostChannels = 31;
  return g.channels <= kMostChannels && g.channels != bf16::kTileRows;
}

RowLayout::RowLayout(const ConvGeometry& g) : g(g), phases(g.stride[1]) {
  places = rounded_up((g.in[1] + 2 * g.pad[1] + phases - 1) / phases, 8) + kBeyond;
}

/// Transposes eight places of eight channels at a time.
void RowLayout::separate(const uint16_t* row, uint16_t* padded, uint16_t* to) const {
  const int64_t width = g.in[1] * g.channels, step = phases * g.channels;
  if (step == 1) return void(std::copy_n(row, width, to + g.pad[1]));
  std::copy_n(row, width, padded + g.pad[1] * g.channels);
  for (int64_t channel = 0; channel < g.channels; channel += 8) {
    const int64_t high = std::min<int64_t>(8, g.channels - channel);
    for (int64_t phase = 0; phase < phases; ++phase) {
      uint16_t* const first = to + (channel * phases + phase) * places;
      for (int64_t place = 0; place + kBeyond < places; place += 8) {
        const uint16_t* const from = padded + place * step + phase * g.channels + channel;
        bf16::Eight tile[8];
        for (int64_t i = 0; i < 8; ++i) std::memcpy(&tile[i], from + i * step, sizeof tile[i]);
        bf16::transpose(tile);
        for (int64_t i = 0; i < high; ++i) {
          std::memcpy(first + i * phases * places + place, &tile[i], sizeof tile[i]);
        }
      }
    }
  }
}

void copy_over(const uint16_t* from, int64_t count, uint16_t* to) {
  if (count <= 8) return copy_vector<8>(from, to);
  for (int64_t i = 0; i < count; i += 16) copy_vector<16>(from + i, to + i);
}

}  // namespace cafetiere::channels_last_bf16
