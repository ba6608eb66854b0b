// SPDX-License-Identifier: Apache-2.0
// Common code of Winograd's minimal filtering over S C N tensors, whose lanes are images.
#pragma once

#include <algorithm>
#include <array>
#include <string>

#include "core/device/cpu/convolution.h"
#include "core/device/cpu/winograd_tiles.h"

namespace cafetiere::winograd_images {

inline constexpr int64_t kLanes = 64;  ///< images at a time; more would spill the accumulators

/// The tiles of an image, and the batch in chunks of kLanes images.
struct Images {
  ConvGeometry g;
  int64_t kernel, points, chunks;
  winograd::TileGrid grid;

  explicit Images(const ConvGeometry& g)
      : g(g),
        kernel(g.kernel[0]),
        points(winograd::point_count(kernel)),
        chunks((g.n + kLanes - 1) / kLanes),
        grid(1, g.out[0], g.out[1]) {}

  int64_t lanes() const { return std::min(kLanes, g.n); }
  int64_t lanes(int64_t chunk) const { return std::min(kLanes, g.n - chunk * kLanes); }
  /// Distance in floats between points of a source tile: [point][channel][image].
  int64_t source_point() const { return g.channels * lanes() + winograd::kApart; }

  /// Transforms the source pixels of a tile to points.
  void read(const winograd::TilePasses& passes, const float* src, int64_t tile, int64_t chunk,
            float* points) const {
    const auto [image, row, column] = grid.place(tile);
    const int64_t many = lanes(chunk);
    const winograd::Plane plane{g.in[0], g.in[1], g.channels * g.n};
    const bool all = many == g.n;  // then channels are contiguous
    for (int64_t c = 0; c < (all ? 1 : g.channels); ++c) {
      passes.source({plane, src, {0, row - g.pad[0], column - g.pad[1]}, c * g.n + chunk * kLanes},
                    1, all ? g.channels * many : many, points + c * many, source_point());
    }
  }
};

}  // namespace cafetiere::winograd_images
