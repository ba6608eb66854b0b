// SPDX-License-Identifier: Apache-2.0
// The weight gradient of winograd_images.cc: a product per point over the images of a tile, whose
// lanes are outputs. The sums are transformed to the kernel's taps.
#include <algorithm>
#include <array>
#include <memory>

#include "core/device/cpu/batch_innermost.h"
#include "core/device/cpu/brgemm.h"
#include "core/device/cpu/winograd_images.h"
#include "core/device/map.h"

namespace cafetiere::winograd_images {
namespace {

using winograd::kSums;
using winograd::TilePasses;

constexpr int64_t kMostParts = 8;      // of the tiles, summed separately and added in order
constexpr int64_t kMostOutputs = 256;  // whose sums fit into a kernel's memory

struct WeightSums : Images {
  int64_t parts;
  int64_t outs;  ///< outputs, padded to whole vectors

  explicit WeightSums(const ConvGeometry& g)
      : Images(g),
        parts(std::min(kMostParts, grid.count)),
        outs(batch_innermost::padded_outputs(g.outputs)) {}

  int64_t gradient_point() const { return lanes() * outs + winograd::kApart; }
  int64_t scratch() const { return kSums * gradient_point() + points * source_point(); }
  /// Floats per part: [point][channel][output].
  int64_t part_size() const { return points * g.channels * outs; }
};

/// Sums a part of the tiles.
struct SumKernel {
  std::shared_ptr<const WeightSums> w;
  std::array<Brgemm, 2> products;  // of whole chunks of images, and of the last
  TilePasses passes;
  const float *src, *diff;  // diff: [pixel][image][output]
  float *partial, *scratch;

  void operator()(int part) const {
    float* const sums = partial + part * w->part_size();
    float* const gradients = scratch + part * w->scratch();
    float* const sources = gradients + kSums * w->gradient_point();
    std::fill_n(sums, w->part_size(), 0.F);
    const int64_t end = (part + 1) * w->grid.count / w->parts;
    for (int64_t tile = part * w->grid.count / w->parts; tile < end; ++tile) {
      for (int64_t chunk = 0; chunk < w->chunks; ++chunk) {
        read_gradient(tile, chunk, gradients);
        w->read(passes, src, tile, chunk, sources);
        add(chunk, gradients, sources, sums);
      }
    }
  }

  void read_gradient(int64_t tile, int64_t chunk, float* points) const {
    const auto [image, row, column] = w->grid.place(tile);
    const winograd::Plane plane{w->g.out[0], w->g.out[1], w->g.n * w->outs};
    passes.gradient(plane.pixels<2>(diff, 0, row, column, chunk * kLanes * w->outs).data(),
                    w->lanes(chunk) * w->outs, points, w->gradient_point());
  }

  void add(int64_t chunk, const float* gradients, const float* sources, float* sums) const {
    for (int64_t i = 0; i < w->points; ++i) {
      products[chunk + 1 == w->chunks](
          gradients + winograd::sum_of(w->kernel, i) * w->gradient_point(),
          sources + i * w->source_point(), sums + i * w->g.channels * w->outs);
    }
  }
};

/// Adds the parts of a channel in order and writes its taps of (outputs, channels, k, k).
struct WriteKernel {
  std::shared_ptr<const WeightSums> w;
  TilePasses passes;
  const float* partial;
  float* out;
  Gradient gradient;
  const RunContext* run;

  void operator()(int channel) const {
    alignas(64) std::array<float, winograd::kMostPoints * kMostOutputs> sums;
    alignas(64) std::array<float, winograd::kMostTaps * kMostOutputs> taps;
    const int64_t outs = w->outs, count = w->g.kernel_size();
    winograd::add_parts(partial + channel * outs, w->parts, w->part_size(), w->points,
                        w->g.channels * outs, outs, sums.data());
    passes.taps(sums.data(), outs, outs, taps.data());
    const bool add = gradient.adds(*run);
    for (int64_t o = 0; o < w->g.outputs; ++o) {
      float* const to = out + (o * w->g.channels + channel) * count;
      for (int64_t t = 0; t < count; ++t) put(to + t, taps[size_t(t * outs + o)], add);
    }
  }
};

}  // namespace

std::string declines_backward_weights(const ConvGeometry& g) {
  if (std::string reason = declines(g); !reason.empty()) return reason;
  return g.outputs <= kMostOutputs ? "" : std::to_string(g.outputs) + " outputs";
}

void backward_weights(Program& p, const std::string& name, const ConvGeometry& g, TensorId src,
                      TensorId diff_dst, Gradient diff_weights) {
  const auto w = std::make_shared<const WeightSums>(g);
  const BufferId diff = batch_innermost::transpose_pixels(p, name, g, diff_dst);
  const BufferId partial = p.scratch(w->parts * w->part_size());
  const BufferId scratch = p.scratch(w->parts * w->scratch());
  Step step;
  step.name = name;
  step.kernel = "Winograd 2 x 2, brgemm, lanes are outputs (" +
                channel_widths(g.channels, g.outputs) + "), " + std::to_string(w->parts) + " parts";
  step.flops = g.flops();
  step.reads = {p.read(src, Layout::kPixels), diff};
  step.writes = {partial, scratch};
  step.make = [=, read = step.reads[0]](const Binder& at) {
    const auto product = [&](int64_t lanes) {
      return Brgemm(w->outs, w->g.channels, lanes, w->outs, lanes, w->outs, /*add=*/true);
    };
    return Kernel{int(w->parts), SumKernel{w,
                                           {product(w->lanes()), product(w->lanes(w->chunks - 1))},
                                           winograd::tile_passes(w->kernel),
                                           at(read),
                                           at(diff),
                                           at(partial),
                                           at(scratch)}};
  };
  p.step(std::move(step));

  Step write = unpack_step(p, name, w->parts, partial, diff_weights);
  write.make = [=, to = write.writes[0]](const Binder& at) {
    return Kernel{int(w->g.channels), WriteKernel{w, winograd::tile_passes(w->kernel), at(partial),
                                                  at(to), diff_weights, at.run()}};
  };
  p.step(std::move(write));
}

}  // namespace cafetiere::winograd_images
