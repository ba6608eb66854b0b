// SPDX-License-Identifier: Apache-2.0
// Weight gradients as dot products over images (S C N): for so few input channels that a product
// would need its operands in another order.
#pragma once

#include <cstdint>

namespace cafetiere::image_dots {

/// Running sums of each weight: image i is added to sum i % kLanes, for any vector width.
inline constexpr int64_t kLanes = 16;

/// Outputs whose gradients of a row stay in the L1 cache while all kernel rows use them.
inline constexpr int64_t kMostOutputs = 4;

/// A run of output pixels that see the same kernel columns, with one source channel and kernel row.
struct PixelRun {
  const float* diff;                         ///< the first pixel's gradients, (output, image)
  const float* src;                          ///< the pixel under its first column
  int64_t pixels, columns, outputs, images;  ///< outputs <= kMostOutputs
  int64_t diff_step, src_step;               ///< floats from one pixel to the next
  int64_t column_step;  ///< floats from the source of a column to that of the next
  float* sums;          ///< of the first column, (output, kLanes)
  int64_t sums_step;    ///< floats from the sums of a column to those of the next
};

/// sums(column, output) += diff(output) * src(column), over all pixels and images, in that order.
using AddRun = void (*)(const PixelRun&);

/// The form for this machine; for AVX-512; and the portable one. All give the same bits.
AddRun add_run();
AddRun wide_add_run();
AddRun plain_add_run();

}  // namespace cafetiere::image_dots
