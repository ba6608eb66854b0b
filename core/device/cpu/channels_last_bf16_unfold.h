// SPDX-License-Identifier: Apache-2.0
// Unfolded source rows for the weight gradient in bfloat16: each pair of a channel and a kernel
// column becomes a channel, as unfolded() describes.
#pragma once

#include <array>
#include <cstdint>

#include "core/device/cpu/channels_last_bf16_rows.h"

namespace cafetiere::channels_last_bf16 {

/// Whether the source has too few channels to fill tiles, and rows that a RowUnfolder can hold.
bool unfolds(const ConvGeometry& g);

/// Lays out source rows as the output columns read them.
class RowUnfolder {
 public:
  /// Numbers that may be written beyond the end of a row.
  static constexpr int64_t kOverrun = 15;

  /// The layout must outlive it.
  explicit RowUnfolder(const RowLayout& layout);

  /// Where an unfolded row goes: for unfolded channels [first, first + count), `distance` apart,
  /// what output columns [col0, col0 + width) read.
  struct Target {
    int64_t col0, width, first, count;
    uint16_t* to;
    int64_t distance;
  };
  /// Writes a source row, [column][channel]; a null row counts as zeros.
  void operator()(const uint16_t* row, const Target& target);

 private:
  friend bool unfolds(const ConvGeometry&);
  static constexpr int64_t kSize = 8 << 10, kMostColumns = 32;

  const RowLayout& layout_;
  std::array<int64_t, kMostColumns> columns_;  // where the columns of the kernel begin
  std::array<uint16_t, kSize> padded_, line_;
};

}  // namespace cafetiere::channels_last_bf16
