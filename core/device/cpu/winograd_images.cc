// SPDX-License-Identifier: Apache-2.0
// Winograd's minimal filtering with the batch innermost: the points of a tile are matrices of
// channels and images, whose lanes are the images, so that channel counts such as 20 or 50 waste
// none.
#include "core/device/cpu/winograd_images.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>

#include "core/device/cpu/biased_step.h"
#include "core/device/cpu/brgemm.h"
#include "core/device/transpose.h"

namespace cafetiere::winograd_images {
namespace {

using winograd::kSums;
using winograd::TilePasses;

constexpr int64_t kFewChannels = 16;
constexpr double kMostTiles = 1.25;  // relative to what images of this size need
constexpr int64_t kFewRuns = 8;
constexpr int64_t kMostRuns = 32;  // each has its own memory

/// A convolution divided into blocks: (run of tiles, chunk of images).
struct Tiling : Images {
  int64_t runs;

  explicit Tiling(const ConvGeometry& g)
      : Images(g), runs(std::clamp(grid.count / 2, std::min(grid.count, kFewRuns), kMostRuns)) {}

  int64_t blocks() const { return runs * chunks; }
  /// Distance in floats between points of the sums: [point][output][image].
  int64_t sum_point() const { return g.outputs * lanes() + winograd::kApart; }
  int64_t scratch() const { return points * source_point() + kSums * sum_point(); }
};

struct TileKernel {
  std::shared_ptr<const Tiling> t;
  std::array<Brgemm, 2> products;  // of whole chunks, and of the last
  TilePasses passes;
  const float *src, *weights, *bias;
  float *dst, *scratch;
  bool relu;

  void operator()(int block) const {
    const int64_t run = block / t->chunks, chunk = block % t->chunks;
    float* const points = scratch + block * t->scratch();
    float* const sums = points + t->points * t->source_point();
    const int64_t end = (run + 1) * t->grid.count / t->runs;
    for (int64_t tile = run * t->grid.count / t->runs; tile < end; ++tile) {
      t->read(passes, src, tile, chunk, points);
      multiply(chunk, points, sums);
      write(tile, chunk, sums);
    }
  }

  /// A matrix product per point, added at the outputs' points.
  void multiply(int64_t chunk, const float* points, float* sums) const {
    winograd::multiply_points(products[chunk + 1 == t->chunks], t->kernel,
                              {points, t->source_point()}, {weights, t->g.outputs * t->g.channels},
                              sums, t->sum_point());
  }

  /// Transforms sums to a tile's outputs: + bias, followed by ReLU if `relu`.
  void write(int64_t tile, int64_t chunk, const float* sums) const {
    const auto [image, row, column] = t->grid.place(tile);
    const int64_t n = t->g.n, lanes = t->lanes(chunk);
    const winograd::Plane plane{t->g.out[0], t->g.out[1], t->g.outputs * n};
    std::array<float, kLanes> start;
    for (int64_t o = 0; o < t->g.outputs; ++o) {
      start.fill(bias ? bias[o] : 0);
      passes.outputs(sums + o * lanes, t->sum_point(), lanes, start.data(),
                     relu ? 0.F : -std::numeric_limits<float>::infinity(),
                     plane.pixels<2>(dst, 0, row, column, o * n + chunk * kLanes).data());
    }
  }
};

/// Packs weights (outputs, channels, k, k) as [point][output][channel].
BufferId pack_weights(Program& p, const std::string& name, const ConvGeometry& g,
                      TensorId weights) {
  const auto pack = [g, passes = winograd::tile_passes(g.kernel[0])](const float* w, float* to,
                                                                     int output) {
    constexpr int64_t kTogether = 64;  // channels
    const int64_t taps = g.kernel_size(), row = g.channels;
    std::array<float, winograd::kMostTaps * kTogether> turned;
    for (int64_t c = 0; c < row; c += kTogether) {
      const int64_t some = std::min(kTogether, row - c);
      transpose_tiles(w + (output * row + c) * taps, some, taps, taps, turned.data(), some);
      passes.kernels(turned.data(), some, /*flipped=*/false, to + output * row + c,
                     g.outputs * row);
    }
  };
  return pack_step(p, name, weights, g.outputs * g.channels * winograd::point_count(g.kernel[0]),
                   g.outputs, pack);
}

}  // namespace

std::string declines(const ConvGeometry& g) {
  if (std::string kernel = winograd::declines_kernel(g); !kernel.empty()) return kernel;
  if (g.group > 1) return std::to_string(g.group) + " groups";
  if (g.channels < kFewChannels || g.outputs < kFewChannels) {
    return channel_widths(g.channels, g.outputs);
  }
  return winograd::tiles_to_pixels(g.out[0], g.out[1]) <= kMostTiles ? "" : "images too small";
}

void convolution(Program& p, const std::string& name, const ConvGeometry& g, TensorId src,
                 TensorId weights, TensorId bias, TensorId dst, bool relu) {
  const auto tiling = std::make_shared<const Tiling>(g);
  const BufferId in = p.read(src, Layout::kPixels), packed = pack_weights(p, name, g, weights);
  const BufferId scratch = p.scratch(tiling->blocks() * tiling->scratch());
  Step step = biased_step(p, name,
                          "Winograd 2 x 2, brgemm SCN, lanes are images (" +
                              channel_widths(g.channels, g.outputs) + ")",
                          g.flops(), {in, packed}, bias, dst, Layout::kPixels);
  step.writes.push_back(scratch);
  step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
    const ConvGeometry& of = tiling->g;
    const auto product = [&](int64_t lanes) {
      return Brgemm(lanes, of.outputs, of.channels, lanes, of.channels, lanes, /*add=*/false);
    };
    return Kernel{int(tiling->blocks()),
                  TileKernel{tiling,
                             {product(tiling->lanes()), product(tiling->lanes(tiling->chunks - 1))},
                             winograd::tile_passes(tiling->kernel),
                             at(reads[0]),
                             at(reads[1]),
                             bias == kNoTensor ? nullptr : at(reads[2]),
                             at(write),
                             at(scratch),
                             relu}};
  };
  p.step(std::move(step));
}

}  // namespace cafetiere::winograd_images
