// SPDX-License-Identifier: Apache-2.0
#include "core/device/cpu/winograd_tiles.h"

#include <algorithm>

#include "core/device/cpu/brgemm.h"
#include "core/device/cpu/convolution.h"
#include "core/device/cpu/plain_lanes.h"
#include "core/device/cpu/winograd_tiles_rows.h"
#include "core/device/isa.h"

namespace cafetiere::winograd {

TilePasses plain_tile_passes(int64_t kernel) { return tile_passes_of<PlainLanes>(kernel); }

TilePasses tile_passes(int64_t kernel) {
  return has_wide_vectors(instruction_set()) ? wide_tile_passes(kernel) : plain_tile_passes(kernel);
}

std::string declines_kernel(const ConvGeometry& g) {
  if (const std::string axes = not_planar(g); !axes.empty()) return axes;
  const int64_t kernel = g.kernel[0];
  for (size_t i = 0; i < 2; ++i) {
    if ((kernel != 3 && kernel != 5) || g.kernel[i] != kernel || g.stride[i] != 1 ||
        g.dilation[i] != 1 || g.pad[i] >= kernel) {
      return "not 3 x 3 or 5 x 5 with stride 1";
    }
  }
  return "";
}

void read_source(const TilePasses& passes, const Plane& plane, const float* images,
                 const TileGrid& grid, int64_t first, int64_t end, std::array<int64_t, 2> pad,
                 int64_t channel, int64_t channels, float* points, int64_t apart) {
  for (int64_t tile = first; tile < end;) {
    const auto [image, y, x] = grid.place(tile);
    const int64_t count = std::min(end - tile, grid.columns - x / 2);  // of one row
    passes.source({plane, images, {image, y - pad[0], x - pad[1]}, channel}, count, channels,
                  points + (tile - first) * channels, apart);
    tile += count;
  }
}

void multiply_points(const Brgemm& product, int64_t kernel, const PointMatrices& a,
                     const PointMatrices& b, float* sums, int64_t apart) {
  std::array<std::array<const float*, 4>, size_t(kSums)> as, bs;
  std::array<int64_t, size_t(kSums)> counts{};
  for (int64_t i = 0; i < point_count(kernel); ++i) {
    const size_t sum = size_t(sum_of(kernel, i)), next = size_t(counts[sum]++);
    as[sum][next] = a.first + i * a.apart, bs[sum][next] = b.first + i * b.apart;
  }
  for (size_t s = 0; s < size_t(kSums); ++s) {
    product(as[s].data(), bs[s].data(), sums + int64_t(s) * apart, counts[s]);
  }
}

void add_parts(const float* partial, int64_t parts, int64_t part, int64_t points, int64_t point,
               int64_t count, float* sums) {
  for (int64_t i = 0; i < points; ++i, sums += count) {
    const float* from = partial + i * point;
    std::copy_n(from, count, sums);
    for (int64_t k = 1; k < parts; ++k) {
      from += part;
      for (int64_t j = 0; j < count; ++j) sums[j] += from[j];
    }
  }
}

}  // namespace cafetiere::winograd
