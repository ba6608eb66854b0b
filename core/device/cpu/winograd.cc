// SPDX-License-Identifier: Apache-2.0
// Convolutions with Winograd's minimal filtering: a tile of 2 x 2 outputs takes 16 products per
// pair of channels instead of 36 with 3 x 3 kernels, and 49 instead of 100 with 5 x 5. Its source
// pixels and the kernels are transformed to as many points; for each one a matrix product runs over
// many tiles.
#include <algorithm>
#include <array>
#include <limits>
#include <memory>

#include "core/device/cpu/biased_step.h"
#include "core/device/cpu/brgemm.h"
#include "core/device/cpu/channels_last.h"
#include "core/device/cpu/lane_chunks.h"
#include "core/device/cpu/winograd_tiles.h"
#include "core/device/transpose.h"

namespace cafetiere::winograd {
namespace {

using channels_last::LaneBlocks;

constexpr int64_t kLeastChannels = 32;  // with fewer, the transforms cost as much as the products
                                        // save
constexpr int64_t kLeastOf5x5 = 16;     // of the source; half of these products are saved
/// Points of a group of tiles: they and the weights fit into the L2 cache.
constexpr int64_t kTogetherFloats = 1 << 17;
constexpr int64_t kFewTiles = 16, kMostTiles = 64;
constexpr int64_t kFewBlocks = 16;   // with fewer blocks, the output channels are divided too
constexpr int64_t kMostBlocks = 32;  // each has its own memory

/// dst(pixel) = sum over kernel x kernel taps of W(tap) src(pixel + tap - pad).
struct Filter {
  int64_t kernel, n, in_channels, out_channels, group, in_h, in_w, out_h, out_w, pad_h, pad_w;

  int64_t group_in() const { return in_channels / group; }
  int64_t group_out() const { return out_channels / group; }
  int64_t points() const { return point_count(kernel); }
};

Filter forward_filter(const ConvGeometry& g) {
  return {g.kernel[0], g.n,      g.channels, g.outputs, g.group, g.in[0],
          g.in[1],     g.out[0], g.out[1],   g.pad[0],  g.pad[1]};
}
Filter backward_filter(const ConvGeometry& g) {
  const int64_t last = g.kernel[0] - 1;
  return {g.kernel[0], g.n,     g.outputs, g.channels,      g.group,        g.out[0],
          g.out[1],    g.in[0], g.in[1],   last - g.pad[0], last - g.pad[1]};
}

/// A filter divided into blocks: (run of groups of tiles, range of output channels).
struct Tiling {
  Filter f;
  LaneBlocks lanes;
  TileGrid grid;
  int64_t tiles, together, groups, runs, out_parts;

  explicit Tiling(const Filter& filter)
      : f(filter), lanes(f.group_out()), grid(f.n, f.out_h, f.out_w), tiles(grid.count) {
    const int64_t fit = kTogetherFloats / (f.points() * f.group_in() + kSums * lanes.size);
    const int64_t most = std::min(tiles, std::clamp(fit, kFewTiles, kMostTiles));
    groups = (tiles + most - 1) / most;
    together = (tiles + groups - 1) / groups;
    groups = (tiles + together - 1) / together;
    runs = std::clamp(groups / 4, std::min(groups, kFewBlocks), kMostBlocks);
    out_parts = std::clamp<int64_t>(kFewBlocks / runs, 1, lanes.count);
  }

  int64_t blocks() const { return runs * out_parts; }
  /// Whether several blocks use the points of a group of tiles. A step of its own transforms them.
  bool shares() const { return out_parts > 1; }
  /// Distance in floats between points, of the source and of the sums.
  int64_t source_point() const { return together * f.group_in() + kApart; }
  int64_t sum_point() const { return together * lanes.size + kApart; }
  int64_t group_points() const { return f.points() * source_point(); }
  int64_t scratch() const { return (shares() ? 0 : group_points()) + kSums * sum_point(); }
};

/// Transforms a filter's source to points; called with a block, the points of a row of tiles.
struct Sources {
  std::shared_ptr<const Tiling> t;
  TilePasses passes;
  const float* src;
  float* shared;  ///< [group of channels][group of tiles]; null unless the tiling shares

  /// Tiles [first, end) of group q to their places in its points.
  void read(int64_t g, int64_t q, int64_t first, int64_t end, float* points) const {
    const Filter& f = t->f;
    read_source(passes, {f.in_h, f.in_w, f.in_channels}, src, t->grid, first, end,
                {f.pad_h, f.pad_w}, g * f.group_in(), f.group_in(),
                points + (first - q * t->together) * f.group_in(), t->source_point());
  }

  float* points(int64_t g, int64_t q) const {
    return shared + (g * t->groups + q) * t->group_points();
  }

  int blocks() const { return int(t->f.group * t->tiles / t->grid.columns); }
  void operator()(int block) const {
    const int64_t rows = t->tiles / t->grid.columns, g = block / rows;
    const int64_t end = (block % rows + 1) * t->grid.columns;
    for (int64_t i = end - t->grid.columns; i < end;) {
      const int64_t q = i / t->together, next = std::min(end, (q + 1) * t->together);
      read(g, q, i, next, points(g, q));
      i = next;
    }
  }
};

/// The products of a point, indexed by whether tiles and lanes are the last.
using Products = std::array<std::array<Brgemm, 2>, 2>;

Products generate(const Tiling& of) {
  Products products;
  for (size_t t = 0; t < 2; ++t) {
    for (size_t l = 0; l < 2; ++l) {
      const int64_t rows = l ? of.lanes.lanes(of.lanes.count - 1) : of.lanes.size;
      const int64_t columns = t ? of.tiles - (of.groups - 1) * of.together : of.together;
      const int64_t depth = of.f.group_in();
      products[t][l] = Brgemm(rows, columns, depth, rows, depth, rows, /*add=*/false);
    }
  }
  return products;
}

struct Kernel2x2 {
  std::shared_ptr<const Tiling> t;
  Products products;
  Sources sources;
  const float *weights, *bias;
  float *dst, *scratch;
  int64_t pixel;  ///< distance between output pixels
  bool relu;

  void operator()(int block) const {
    const Filter& f = t->f;
    // A thread's blocks are neighbours, so it reads only its part of the weights.
    const int64_t part = block / t->runs, run = block % t->runs;
    const int64_t b0 = part * t->lanes.count / t->out_parts;
    const int64_t b1 = (part + 1) * t->lanes.count / t->out_parts;
    float* const sums = scratch + block * t->scratch();
    float* const own = sums + kSums * t->sum_point();
    for (int64_t g = 0; g < f.group; ++g) {
      for (int64_t q = run * t->groups / t->runs; q < (run + 1) * t->groups / t->runs; ++q) {
        const int64_t first = q * t->together, end = std::min(t->tiles, first + t->together);
        float* const points = t->shares() ? sources.points(g, q) : own;
        if (!t->shares()) sources.read(g, q, first, end, points);
        for (int64_t b = b0; b < b1; ++b) {
          multiply(g, b, end - first, points, sums);
          const int64_t lanes = t->lanes.lanes(b), o0 = g * f.group_out() + t->lanes.begin(b);
          for (int64_t i = first; i < end; ++i) {
            write_tile(i, o0, lanes, sums + (i - first) * lanes);
          }
        }
      }
    }
  }

  /// The sums of a block of lanes: a matrix product per point, added at the outputs' points.
  void multiply(int64_t g, int64_t b, int64_t tiles, const float* points, float* sums) const {
    const int64_t depth = t->f.group_in(), lanes = t->lanes.lanes(b);
    const Brgemm& product = products[tiles < t->together][lanes < t->lanes.size];
    const float* w = weights + (g * t->f.group_out() + t->lanes.begin(b)) * depth * t->f.points();
    multiply_points(product, t->f.kernel, {w, depth * lanes}, {points, t->source_point()}, sums,
                    t->sum_point());
  }

  /// Transforms sums to a tile's outputs: + bias, followed by ReLU if `relu`.
  void write_tile(int64_t tile, int64_t o0, int64_t lanes, const float* sums) const {
    const Filter& f = t->f;
    const auto [image, row, column] = t->grid.place(tile);
    const Plane plane{f.out_h, f.out_w, pixel};
    sources.passes.outputs(sums, t->sum_point(), lanes, bias ? bias + o0 : nullptr,
                           relu ? 0.F : -std::numeric_limits<float>::infinity(),
                           plane.pixels<2>(dst, image, row, column, o0).data());
  }
};

/// Packs weights (outputs, channels / group, k, k) as [block of lanes][point][depth][lane]:
/// forward, lanes are the outputs and depth is the channels; backward, the reverse.
BufferId pack_weights(Program& p, const std::string& name, const ConvGeometry& g, TensorId weights,
                      bool backward) {
  const int64_t ins = g.channels / g.group, outs = g.outputs / g.group;
  const int64_t kernel_taps = g.kernel_size(), points = point_count(g.kernel[0]);
  const LaneBlocks lanes(backward ? ins : outs);
  const auto pack = [=, passes = tile_passes(g.kernel[0])](const float* w, float* to, int block) {
    constexpr int64_t kTogether = kOctet;  // along the depth, so that cache lines are read once
    const int64_t group = block / lanes.count, first = lanes.begin(block % lanes.count);
    const int64_t height = lanes.lanes(block % lanes.count), depth = backward ? outs : ins;
    const float* from = w + (group * outs * ins + first * (backward ? 1 : ins)) * kernel_taps;
    float* out = to + (group * outs * ins + first * depth) * points;
    std::array<float, kTogether * kMostTaps * LaneBlocks::kLanes> taps;
    for (int64_t d = 0; d < depth; d += kTogether) {
      if (backward) {
        for (int64_t i = 0; i < kTogether; ++i) {
          transpose_tiles(from + (d + i) * ins * kernel_taps, height, kernel_taps, kernel_taps,
                          taps.data() + i * kernel_taps * height, height);
        }
      } else {
        transpose_tiles(from + d * kernel_taps, height, kTogether * kernel_taps, ins * kernel_taps,
                        taps.data(), height);
      }
      for (int64_t i = 0; i < kTogether; ++i, out += height) {
        passes.kernels(taps.data() + i * kernel_taps * height, height, backward, out,
                       depth * height);
      }
    }
  };
  return pack_step(p, name, weights, weight_count(g) / kernel_taps * points, g.group * lanes.count,
                   pack);
}

/// Emits the step that transforms the source for all blocks. Returns the buffer of points.
BufferId share_points(Program& p, const std::string& name,
                      const std::shared_ptr<const Tiling>& tiling, BufferId src) {
  const BufferId points = p.scratch(tiling->f.group * tiling->groups * tiling->group_points());
  Step step;
  step.name = name + " points";
  step.kernel = "NSC to Winograd's points";
  step.reads = {src};
  step.writes = {points};
  step.make = [=](const Binder& at) {
    const Sources sources{tiling, tile_passes(tiling->f.kernel), at(src), at(points)};
    return Kernel{sources.blocks(), sources};
  };
  p.step(std::move(step));
  return points;
}

void emit(Program& p, const std::string& name, const Filter& filter, BufferId src, BufferId packed,
          TensorId bias, TensorId dst, bool relu, double flops) {
  const auto tiling = std::make_shared<const Tiling>(filter);
  const BufferId shared = tiling->shares() ? share_points(p, name, tiling, src) : src;
  const BufferId scratch = p.scratch(tiling->blocks() * tiling->scratch());
  Step step = biased_step(p, name,
                          "Winograd 2 x 2, brgemm NSC, lanes are channels (" +
                              channel_widths(filter.group_in(), filter.group_out()) + ")",
                          flops, {shared, packed}, bias, dst, Layout::kChannels);
  step.writes.push_back(scratch);
  const auto make = [=, reads = step.reads](const Binder& at, const Part& to) {
    const bool shares = tiling->shares();
    const Sources sources{tiling, tile_passes(tiling->f.kernel), shares ? nullptr : at(reads[0]),
                          shares ? at(reads[0]) : nullptr};
    return Kernel{int(tiling->blocks()),
                  Kernel2x2{tiling, generate(*tiling), sources, at(reads[1]),
                            bias == kNoTensor ? nullptr : at(reads[2]), at(to.whole) + to.first,
                            at(scratch), to.channels, relu}};
  };
  step.make = [=, write = step.writes[0]](const Binder& at) {
    return make(at, {write, 0, filter.out_channels});
  };
  step.make_part = make;
  p.step(std::move(step));
}

/// Of a source of `in` channels per group, and a result of h x w pixels with `out` channels. `most`
/// is the largest size of the tiles, relative to what images of this size need.
std::string declines_any(const ConvGeometry& g, int64_t in, int64_t out, int64_t h, int64_t w,
                         double most) {
  if (std::string kernel = declines_kernel(g); !kernel.empty()) return kernel;
  const int64_t least = g.kernel[0] == 3 ? kLeastChannels : kLeastOf5x5;
  if (in < least || out < kLeastChannels || in % kOctet != 0 || out % kOctet != 0) {
    return channel_widths(in, out);
  }
  return tiles_to_pixels(h, w) <= most ? "" : "images too small";
}

double most_tiles(const ConvGeometry& g) { return g.kernel[0] == 3 ? 1.5 : 1.25; }

}  // namespace

std::string declines(const ConvGeometry& g) {
  return declines_any(g, g.channels / g.group, g.outputs / g.group, g.out.front(), g.out.back(),
                      most_tiles(g));
}
std::string declines_backward_data(const ConvGeometry& g) {
  return declines_any(g, g.outputs / g.group, g.channels / g.group, g.in.front(), g.in.back(),
                      most_tiles(g));
}
std::string declines_backward_weights(const ConvGeometry& g) {
  return declines_any(g, g.channels / g.group, g.outputs / g.group, g.out.front(), g.out.back(),
                      1.25);
}

void convolution(Program& p, const std::string& name, const ConvGeometry& g, TensorId src,
                 TensorId weights, TensorId bias, TensorId dst, bool relu) {
  const BufferId in = p.read(src, Layout::kChannels);
  const BufferId packed = pack_weights(p, name, g, weights, false);
  emit(p, name, forward_filter(g), in, packed, bias, dst, relu, g.flops());
}

void backward_data(Program& p, const std::string& name, const ConvGeometry& g, TensorId diff_dst,
                   TensorId weights, TensorId diff_src) {
  const BufferId in = p.read(diff_dst, Layout::kChannels);
  const BufferId packed = pack_weights(p, name, g, weights, true);
  emit(p, name, backward_filter(g), in, packed, kNoTensor, diff_src, false, g.flops());
}

}  // namespace cafetiere::winograd
