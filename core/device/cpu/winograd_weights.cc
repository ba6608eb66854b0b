// SPDX-License-Identifier: Apache-2.0
// The weight gradient of convolutions with Winograd's minimal filtering: the transpose of the
// forward pass. A tile's source pixels and output gradients are transformed to points, where a
// matrix product sums over many tiles; the sums are transformed to the kernel's taps.
#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "core/device/cpu/brgemm.h"
#include "core/device/cpu/channels_last.h"
#include "core/device/cpu/winograd_tiles.h"
#include "core/device/map.h"
#include "core/device/transpose.h"

namespace cafetiere::winograd {
namespace {

using channels_last::LaneBlocks;

constexpr int64_t kLanesTogether = 64;  // outputs and channels whose sums fit into the L2 cache
constexpr int64_t kTilesTogether = 64;  // a product's factors and sums stay in the L1 cache
constexpr int64_t kFewParts = 16;       // with fewer blocks, the tiles are divided into parts
constexpr int64_t kMostParts = 8;
constexpr int64_t kMostRuns = 32;  // of blocks, each with its own memory

/// The sums divided into blocks: (part of the tiles, group, range of outputs, range of channels).
/// Parts are summed separately and added in order.
struct WeightSums {
  ConvGeometry g;
  int64_t kernel, points;
  TileGrid grid;
  LaneBlocks outs, ins;
  int64_t parts;

  explicit WeightSums(const ConvGeometry& g)
      : g(g),
        kernel(g.kernel[0]),
        points(point_count(kernel)),
        grid(g.n, g.out[0], g.out[1]),
        outs(g.outputs / g.group, kOctet, 1, kLanesTogether),
        ins(g.channels / g.group, kOctet, 1, kLanesTogether) {
    const int64_t most = std::min(kMostParts, (grid.count + kTilesTogether - 1) / kTilesTogether);
    parts = std::clamp<int64_t>((kFewParts + part_blocks() - 1) / part_blocks(), 1, most);
  }
  int64_t part_blocks() const { return g.group * outs.count * ins.count; }
  int64_t blocks() const { return parts * part_blocks(); }
  int64_t runs() const { return std::min(blocks(), kMostRuns); }
  /// Distance in floats between points of some tiles, of output gradients and of sources.
  int64_t gradient_point() const { return kTilesTogether * outs.size + kApart; }
  int64_t source_point() const { return kTilesTogether * ins.size + kApart; }
  int64_t scratch() const { return kSums * gradient_point() + points * source_point(); }
  /// Floats per block: [point][channel][output].
  int64_t block_size() const { return points * outs.size * ins.size; }

  int64_t first_tile(int64_t part) const { return part * grid.count / parts; }
  int64_t part(int64_t block) const { return block / part_blocks(); }
  int64_t group(int64_t block) const { return block / (outs.count * ins.count) % g.group; }
  int64_t out(int64_t block) const { return block / ins.count % outs.count; }
  int64_t in(int64_t block) const { return block % ins.count; }
  /// The first output and the first channel of a block.
  int64_t first_out(int64_t block) const {
    return group(block) * outs.channels + outs.begin(out(block));
  }
  int64_t first_in(int64_t block) const {
    return group(block) * ins.channels + ins.begin(in(block));
  }
};

/// The products of a point for `tiles` tiles, indexed by whether the ranges of outputs and channels
/// are the last.
using PointProducts = std::array<std::array<Brgemm, 2>, 2>;

PointProducts of_tiles(const WeightSums& w, int64_t tiles) {
  PointProducts products;
  for (size_t o = 0; o < 2; ++o) {
    for (size_t i = 0; i < 2; ++i) {
      const int64_t rows = w.outs.lanes(o ? w.outs.count - 1 : 0);
      const int64_t columns = w.ins.lanes(i ? w.ins.count - 1 : 0);
      products[o][i] =
          Brgemm(rows, columns, tiles, rows, columns, rows, /*add=*/true, Brgemm::B::kRows);
    }
  }
  return products;
}

/// For whole groups of tiles and for the last one of each part, keyed by number of tiles.
std::shared_ptr<const std::map<int64_t, PointProducts>> generate_points(const WeightSums& w) {
  const auto products = std::make_shared<std::map<int64_t, PointProducts>>();
  for (int64_t part = 0; part < w.parts; ++part) {
    const int64_t tiles = w.first_tile(part + 1) - w.first_tile(part);
    for (const int64_t n : {std::min(tiles, kTilesTogether), tiles % kTilesTogether}) {
      if (n > 0 && !products->contains(n)) products->emplace(n, of_tiles(w, n));
    }
  }
  return products;
}

/// Sums the blocks of a run.
struct SumKernel {
  std::shared_ptr<const WeightSums> w;
  std::shared_ptr<const std::map<int64_t, PointProducts>> products;  // keyed by number of tiles
  TilePasses passes;
  const float *src, *diff;
  float *partial, *scratch;

  void operator()(int run) const {
    const int64_t end = (run + 1) * w->blocks() / w->runs();
    for (int64_t block = run * w->blocks() / w->runs(); block < end; ++block) {
      sum_block(block, scratch + run * w->scratch());
    }
  }

  void sum_block(int64_t block, float* points) const {
    const int64_t outs = w->outs.lanes(w->out(block)), ins = w->ins.lanes(w->in(block));
    float* const sums = partial + block * w->block_size();
    std::fill_n(sums, w->points * outs * ins, 0.F);
    const int64_t end = w->first_tile(w->part(block) + 1);
    for (int64_t first = w->first_tile(w->part(block)); first < end; first += kTilesTogether) {
      add_tiles(block, first, std::min(first + kTilesTogether, end), points, sums);
    }
  }

  void add_tiles(int64_t block, int64_t first, int64_t end, float* gradients, float* sums) const {
    const int64_t outs = w->outs.lanes(w->out(block)), ins = w->ins.lanes(w->in(block));
    float* const sources = gradients + kSums * w->gradient_point();
    const ConvGeometry& g = w->g;
    const Plane in{g.in[0], g.in[1], g.channels}, out{g.out[0], g.out[1], g.outputs};
    for (int64_t tile = first; tile < end; ++tile) {
      const auto [image, row, column] = w->grid.place(tile);
      passes.gradient(out.pixels<2>(diff, image, row, column, w->first_out(block)).data(), outs,
                      gradients + (tile - first) * outs, w->gradient_point());
    }
    read_source(passes, in, src, w->grid, first, end, {g.pad[0], g.pad[1]}, w->first_in(block), ins,
                sources, w->source_point());
    const Brgemm& product = products->at(end - first)[outs < w->outs.size][ins < w->ins.size];
    for (int64_t i = 0; i < w->points; ++i) {
      product(gradients + sum_of(w->kernel, i) * w->gradient_point(),
              sources + i * w->source_point(), sums + i * outs * ins);
    }
  }
};

/// Adds the parts of a block in order and writes them as (outputs, channels, k, k).
struct WriteKernel {
  std::shared_ptr<const WeightSums> w;
  TilePasses passes;
  const float* partial;
  float* out;
  Gradient gradient;
  const RunContext* run;

  void operator()(int block) const {
    constexpr int64_t kChannels = 8, kMostRows = kChannels * kMostTaps;
    const int64_t kernel_taps = w->kernel * w->kernel, rows = kChannels * kernel_taps;
    const int64_t outs = w->outs.lanes(w->out(block)), ins = w->ins.lanes(w->in(block));
    const int64_t depth = w->ins.channels * kernel_taps;
    const bool add = gradient.adds(*run);
    float* const to = out + w->first_out(block) * depth + w->ins.begin(w->in(block)) * kernel_taps;
    for (int64_t c = 0; c < ins; c += kChannels) {
      alignas(64) float taps[kMostRows * kLanesTogether], turned[kMostRows * kLanesTogether];
      for (int64_t i = 0; i < kChannels; ++i) {
        write_taps(block, (c + i) * outs, outs, outs * ins, taps + i * kernel_taps * outs);
      }
      transpose_tiles(taps, rows, outs, outs, turned, rows);
      for (int64_t o = 0; o < outs; ++o) {
        float* const row = to + o * depth + c * kernel_taps;
        for (int64_t r = 0; r < rows; ++r) put(row + r, turned[o * rows + r], add);
      }
    }
  }

  /// Computes the taps of one channel, whose sums begin at `first` in each point.
  void write_taps(int block, int64_t first, int64_t outs, int64_t point, float* taps) const {
    alignas(64) float sums[kMostPoints * kLanesTogether];
    add_parts(partial + block * w->block_size() + first, w->parts,
              w->part_blocks() * w->block_size(), w->points, point, outs, sums);
    passes.taps(sums, outs, outs, taps);
  }
};

}  // namespace

void backward_weights(Program& p, const std::string& name, const ConvGeometry& g, TensorId src,
                      TensorId diff_dst, Gradient diff_weights) {
  const auto w = std::make_shared<const WeightSums>(g);
  const BufferId partial = p.scratch(w->blocks() * w->block_size());
  const BufferId points = p.scratch(w->runs() * w->scratch());
  Step step;
  step.name = name;
  step.kernel = "Winograd 2 x 2, brgemm NSC, lanes are channels (" +
                channel_widths(w->ins.channels, w->outs.channels) + "), " +
                std::to_string(w->parts) + " parts";
  step.flops = g.flops();
  step.reads = {p.read(src, Layout::kChannels), p.read(diff_dst, Layout::kChannels)};
  step.writes = {partial, points};
  step.make = [=, reads = step.reads](const Binder& at) {
    return Kernel{int(w->runs()), SumKernel{w, generate_points(*w), tile_passes(w->kernel),
                                            at(reads[0]), at(reads[1]), at(partial), at(points)}};
  };
  p.step(std::move(step));

  Step write = unpack_step(p, name, w->parts, partial, diff_weights);
  write.make = [=, to = write.writes[0]](const Binder& at) {
    return Kernel{int(w->part_blocks()), WriteKernel{w, tile_passes(w->kernel), at(partial), at(to),
                                                     diff_weights, at.run()}};
  };
  p.step(std::move(write));
}

}  // namespace cafetiere::winograd
