// SPDX-License-Identifier: Apache-2.0
// Lines: copies the source of a correlation in bfloat16 as Window lays it out.
#pragma once

#include <cstdint>
#include <span>

#include "core/device/cpu/bf16_window.h"

namespace cafetiere::bf16 {

struct Lines {
  const Window& w;
  const uint16_t* src;  ///< (N, rows, columns, group, channels)

  /// Lays out the rows read by the outputs of class rows [row0, row0 + tile) of a group, for images
  /// [first, first + count): image_size() numbers each, and then zeros for what products read
  /// beyond the end.
  void lay_out(int64_t first, int64_t count, int64_t group, int64_t row0, uint16_t* to) const;

 private:
  const uint16_t* source_row(const uint16_t* image, int64_t row) const;
  void copy_row(const uint16_t* image, int64_t row, uint16_t* to) const;
  void copy_pixels(const uint16_t* from, int64_t count, uint16_t* to) const;
  void unfold_row(const uint16_t* image, int64_t row, uint16_t* to) const;
  void interleave(std::span<const uint16_t* const> rows, int64_t count, uint16_t* to) const;
};

}  // namespace cafetiere::bf16
