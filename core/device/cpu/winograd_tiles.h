// SPDX-License-Identifier: Apache-2.0
// The tiles of Winograd's minimal filtering F(2 x 2, k x k) (Lavin and Gray 2016) over N S C
// tensors, and the transforms between pixels and points, for k = 3 and 5. Five taps of an axis are
// the first three and the last two: F(2, 3) has 4 points, F(2, 2) has 3, and their products are
// added at the 4 points of the outputs.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/device/cpu/lane_chunks.h"
#include "core/device/geometry.h"

namespace cafetiere {
class Brgemm;
}

namespace cafetiere::winograd {

inline constexpr int64_t kSums = 16;  ///< points of a tile's outputs, and of their gradients
inline constexpr int64_t kMostTaps = 25, kMostPoints = 49;

/// Points of a kernel along an axis, and in all.
constexpr int64_t axis_points(int64_t kernel) { return kernel == 3 ? 4 : 7; }
constexpr int64_t point_count(int64_t kernel) { return axis_points(kernel) * axis_points(kernel); }

/// The point of the outputs to which the products at one of the kernel's points are added.
constexpr int64_t sum_of(int64_t kernel, int64_t point) {
  constexpr std::array<int64_t, 7> kOfAxis = {0, 1, 2, 3, 0, 1, 3};
  const int64_t n = axis_points(kernel);
  return kOfAxis[size_t(point / n)] * 4 + kOfAxis[size_t(point % n)];
}

/// Why neither size of kernels fits; empty if one does.
std::string declines_kernel(const ConvGeometry& g);

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

/// The outputs of all tiles of an image, relative to its own.
inline double tiles_to_pixels(int64_t h, int64_t w) {
  return double(TileGrid(1, h, w).count * 4) / double(h * w);
}

/// The source pixels of neighbouring tiles: the k + 1 rows under them, from the first pixel of each
/// and null outside of the image, and the first tile's first column.
struct SourceRows {
  std::array<const float*, 6> rows;
  int64_t width, distance, column;  ///< of the image; from one pixel to the next

  SourceRows(const Plane& plane, const float* images, const std::array<int64_t, 3>& place,
             int64_t channel)
      : rows{}, width(plane.w), distance(plane.channels), column(place[2]) {
    for (int64_t i = 0; i < int64_t(rows.size()); ++i) {
      const int64_t y = place[1] + i;
      if (y >= 0 && y < plane.h) {
        rows[size_t(i)] = images + (place[0] * plane.h + y) * width * distance + channel;
      }
    }
  }
};

/// The passes over the channels of a tile, a multiple of 8; points are `apart` floats from each
/// other. All implementations give bitwise the same results.
struct TilePasses {
  /// The addresses of pixels; null outside of the image.
  using Pixels = const float* const*;

  /// From (k + 1) x (k + 1) source pixels to points, B^T d B, for some tiles from left to right,
  /// whose points are `channels` apart: columns under two or three tiles are transformed once.
  void (*source)(const SourceRows& d, int64_t tiles, int64_t channels, float* points,
                 int64_t apart);
  /// From the points of outputs to 2 x 2 outputs: A^T m A + bias (may be null), at least `floor`.
  void (*outputs)(const float* points, int64_t apart, int64_t channels, const float* bias,
                  float floor, float* const* y);
  /// From 2 x 2 output gradients to the points of outputs: A dy A^T.
  void (*gradient)(Pixels dy, int64_t channels, float* points, int64_t apart);
  /// From a kernel's taps, [tap][channel], rotated by 180 degrees if `flipped`, to points: G g G^T.
  void (*kernels)(const float* taps, int64_t channels, bool flipped, float* points, int64_t apart);
  /// From points to the gradient of the kernel's taps, [tap][channel]: G^T m G.
  void (*taps)(const float* points, int64_t apart, int64_t channels, float* to);
};

/// The implementation for kernels of 3 x 3 or 5 x 5 and the instruction set in use.
TilePasses tile_passes(int64_t kernel);
/// For comparison; the second one requires AVX-512.
TilePasses plain_tile_passes(int64_t kernel);
TilePasses wide_tile_passes(int64_t kernel);

/// Transforms the source pixels of tiles [first, end) from a channel on to points. Their places are
/// those of outputs, less the padding.
void read_source(const TilePasses& passes, const Plane& plane, const float* images,
                 const TileGrid& grid, int64_t first, int64_t end, std::array<int64_t, 2> pad,
                 int64_t channel, int64_t channels, float* points, int64_t apart);

/// Matrices of the points, `apart` floats from each other.
struct PointMatrices {
  const float* first;
  int64_t apart;
};

/// A matrix product a b per point of a kernel, added at the outputs' points, which are `apart` floats
/// from each other in `sums`. `product` must not add.
void multiply_points(const Brgemm& product, int64_t kernel, const PointMatrices& a,
                     const PointMatrices& b, float* sums, int64_t apart);

/// sums[point][i] = the sum of `parts` of `partial`, in order, for i < count; `part` and `point` are
/// the distances in floats between parts and between points.
void add_parts(const float* partial, int64_t parts, int64_t part, int64_t points, int64_t point,
               int64_t count, float* sums);

}  // namespace cafetiere::winograd
