// SPDX-License-Identifier: Apache-2.0
// The tiles of Winograd's minimal filtering F(2 x 2, 3 x 3) (Lavin and Gray 2016) over N S C
// tensors, and the transforms between pixels and their 16 points.
#pragma once

#include <array>
#include <cstdint>

#include "core/device/cpu/lane_chunks.h"

namespace cafetiere::winograd {

inline constexpr int64_t kPoints = 16, kTaps = 9;
inline constexpr int64_t kApart =
    kCacheLine;  ///< padding between points, which would otherwise map to the same cache set

/// Images of pixels with contiguous channels.
struct Plane {
  int64_t h, w, channels;

  /// The addresses of kSide x kSide pixels from (y, x) of an image, at a channel; null outside the
  /// image.
  template <int64_t kSide, class T>
  std::array<T*, size_t(kSide* kSide)> pixels(T* images, int64_t image, int64_t y, int64_t x,
                                              int64_t channel) const {
    std::array<T*, size_t(kSide * kSide)> at;
    for (int64_t i = 0; i < kSide; ++i) {
      for (int64_t j = 0; j < kSide; ++j) {
        const bool inside = y + i >= 0 && y + i < h && x + j >= 0 && x + j < w;
        at[size_t(i * kSide + j)] =
            inside ? images + ((image * h + y + i) * w + x + j) * channels + channel : nullptr;
      }
    }
    return at;
  }
};

/// The 2 x 2 output tiles of some images.
struct TileGrid {
  int64_t rows, columns, count;

  TileGrid(int64_t images, int64_t h, int64_t w)
      : rows((h + 1) / 2), columns((w + 1) / 2), count(images * rows * columns) {}

  /// The image of a tile, and its first output row and column.
  std::array<int64_t, 3> place(int64_t tile) const {
    const int64_t column = tile % columns, row = tile / columns;
    return {row / rows, row % rows * 2, column * 2};
  }
};

/// The passes over the channels of a tile, a multiple of 8; points are `apart` floats from each
/// other. All implementations give bitwise the same results.
struct TilePasses {
  using Pixels = std::array<const float*, 16>;
  using Pairs = std::array<const float*, 4>;

  /// From source pixels to points: B^T d B.
  void (*source)(const Pixels& d, int64_t channels, float* points, int64_t apart);
  /// From points to outputs: A^T m A + bias (may be null), at least `floor`.
  void (*outputs)(const float* points, int64_t apart, int64_t channels, const float* bias,
                  float floor, const std::array<float*, 4>& y);
  /// From output gradients to points: A dy A^T.
  void (*gradient)(const Pairs& dy, int64_t channels, float* points, int64_t apart);
  /// From a kernel's taps, [tap][channel], rotated by 180 degrees if `flipped`, to points: G g G^T.
  void (*kernels)(const float* taps, int64_t channels, bool flipped, float* points, int64_t apart);
  /// From points to the gradient of the kernel's taps, [tap][channel]: G^T m G.
  void (*taps)(const float* points, int64_t apart, int64_t channels, float* to);
};

/// The implementation for the instruction set in use.
TilePasses tile_passes();
/// For comparison; the second one requires AVX-512.
TilePasses plain_tile_passes();
TilePasses wide_tile_passes();

}  // namespace cafetiere::winograd
