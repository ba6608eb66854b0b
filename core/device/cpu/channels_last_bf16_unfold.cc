// SPDX-License-Identifier: Apache-2.0
#include "core/device/cpu/channels_last_bf16_unfold.h"

#include <algorithm>

namespace cafetiere::channels_last_bf16 {

bool unfolds(const ConvGeometry& g) {
  if (g.spatial() != 2 || g.group != 1 || g.kernel[1] == 1 || !has_few_channels(g)) return false;
  const RowLayout layout(g);
  return g.kernel[1] <= RowUnfolder::kMostColumns &&
         std::max(layout.padded_size(), layout.size()) <= RowUnfolder::kSize;
}

RowUnfolder::RowUnfolder(const RowLayout& layout) : layout_(layout) {
  for (int64_t kw = 0; kw < layout.g.kernel[1]; ++kw) columns_[size_t(kw)] = layout_.begin(kw);
  std::fill_n(padded_.begin(), layout_.padded_size(), uint16_t(0));
  std::fill_n(line_.begin(), layout_.size(), uint16_t(0));
}

void RowUnfolder::operator()(const uint16_t* row, const Target& target) {
  const auto [col0, width, first, count, to, distance] = target;
  if (!row) {
    for (int64_t i = 0; i < count; ++i) std::fill_n(to + i * distance, width, uint16_t(0));
    return;
  }
  layout_.separate(row, padded_.data(), line_.data());
  const int64_t kernel = layout_.g.kernel[1], size = layout_.phases * layout_.places;
  const uint16_t* channel = line_.data() + first / kernel * size + col0;
  int64_t kw = first % kernel;
  for (int64_t i = 0; i < count; ++i) {
    copy_over(channel + columns_[size_t(kw)], width, to + i * distance);
    if (++kw == kernel) kw = 0, channel += size;
  }
}

}  // namespace cafetiere::channels_last_bf16
