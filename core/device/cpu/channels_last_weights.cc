// SPDX-License-Identifier: Apache-2.0
// The channels-last weight gradient: products of the output gradients of pixels, one block of
// channels at a time, with the source pixels under each kernel element.
#include "core/device/cpu/channels_last_weights.h"

#include <array>
#include <map>
#include <memory>

#include "core/device/cpu/lane_chunks.h"
#include "core/device/map.h"
#include "core/device/transpose.h"

namespace cafetiere::channels_last {
namespace {

constexpr int64_t kPixels = 64;   // pixels per product; their gradients stay in the L1 cache
constexpr int64_t kCopied = 256;  // source channels per product of copied pixels
constexpr int64_t kDistance = kCopied + kCacheLine;  // of copied pixels: not a power of two

/// Additionally divided into tiles of output pixels; each kernel element covers their source pixels
/// in spans.
struct WeightGradient : SumBlocks {
  int64_t row_tile, col_tiles;
  std::vector<std::vector<Span>> spans;  // per tile of columns
  /// A product's source pixels are a multiple of 4 KB apart: too few of them would fit into the L1
  /// cache, so they are copied.
  bool copies = false;

  explicit WeightGradient(const ConvGeometry& g)
      : SumBlocks(g, LaneBlocks(g.outputs / g.group), g.channels / g.group) {
    row_tile = std::max<int64_t>(1, kPixels / c.out_w);
    col_tiles = (c.out_w + kPixels - 1) / kPixels;
    for (int64_t t = 0; t < col_tiles; ++t) {
      spans.push_back(cafetiere::spans(c.cols, column(t), column(t + 1), c.kernel_w));
    }
    const bool one = c.kernel_size() == 1 && spans[0].size() == 1;
    copies = one && distance(spans[0][0]) % 1024 == 0;
  }
  /// Of a span's source pixels, in floats.
  int64_t distance(const Span& s) const { return s.src_step * c.in_channels; }
  int64_t column(int64_t tile) const { return tile * c.out_w / col_tiles; }
};

/// The products of all blocks, keyed by columns, step, lanes and channels.
using WeightProducts = std::map<std::array<int64_t, 4>, Brgemm>;

WeightProducts generate(const WeightGradient& w) {
  WeightProducts products;
  for (const auto& tile : w.spans) {
    for (const Span& s : tile) {
      for (int64_t height : {w.lanes.size, w.lanes.lanes(w.lanes.count - 1)}) {
        for (int64_t range = 0; range < w.sources; ++range) {
          const int64_t channels = w.source(range + 1) - w.source(range);
          const int64_t whole = w.copies ? std::min(channels, kCopied) : channels;
          for (int64_t width : {whole, channels % whole}) {
            if (width == 0) continue;
            products.try_emplace({s.count, s.src_step, height, width}, height, width, s.count,
                                 height, w.copies ? kDistance : w.distance(s),
                                 w.c.kernel_size() * height, true, Brgemm::B::kRows);
          }
        }
      }
    }
  }
  return products;
}

/// Sums one block.
struct PartKernel {
  std::shared_ptr<const WeightGradient> w;
  std::shared_ptr<const WeightProducts> products;
  const float *src, *diff;
  float* partial;

  using Rows = std::array<const float*, kPixels>;  ///< where the pixels of output rows begin

  void operator()(int block) const {
    const Correlation& c = w->c;
    const auto [part, group, b0, b1, first, channels] = w->block(block);
    float* const sums = w->zero(partial, block);
    for (int64_t n = part * c.n / w->parts; n < (part + 1) * c.n / w->parts; ++n) {
      const float* dy = diff + n * c.out_h * c.out_w * c.out_channels + group * c.group_out();
      const float* x = src + n * c.in_h * c.in_w * c.in_channels + group * c.group_in() + first;
      for (int64_t row = 0; row < c.out_h; row += w->row_tile) {
        for (int64_t tile = 0; tile < w->col_tiles; ++tile) {
          const int64_t end = std::min(c.out_h, row + w->row_tile);
          for (int64_t b = b0; b < b1; ++b) {
            add_tile(row, end, tile, dy + w->lanes.begin(b), w->lanes.lanes(b), x, channels,
                     w->sum(sums, b, first));
          }
        }
      }
    }
  }

  /// Adds the contribution of the output pixels of some rows and columns.
  void add_tile(int64_t row0, int64_t row1, int64_t tile, const float* dy, int64_t lanes,
                const float* x, int64_t channels, float* sum) const {
    const Correlation& c = w->c;
    const int64_t first = w->column(tile), width = w->column(tile + 1) - first;
    std::array<float, kPixels * LaneBlocks::kLanes> near;  // the pixels' lanes, contiguous
    float* to = near.data();
    for (int64_t oh = row0; oh < row1; ++oh) {
      for (int64_t i = 0; i < width; ++i, to += lanes) {
        std::copy_n(dy + (oh * c.out_w + first + i) * c.out_channels, lanes, to);
      }
    }
    for (const Span& span : w->spans[size_t(tile)]) {
      for (int64_t kh = 0; kh < c.kernel_h; ++kh) {
        Rows as, bs;
        int64_t count = 0;
        for (int64_t oh = row0; oh < row1; ++oh) {
          const auto& taps = c.rows[size_t(oh)];
          const auto hit =
              std::find_if(taps.begin(), taps.end(), [&](auto& t) { return t.first == kh; });
          if (hit == taps.end()) continue;
          as[size_t(count)] = near.data() + ((oh - row0) * width + span.out - first) * lanes;
          bs[size_t(count++)] = x + (hit->second * c.in_w + span.src) * c.in_channels;
        }
        if (count == 0) continue;
        if (w->copies) {
          add_copied(span, lanes, channels, as, bs, count, sum);
        } else {
          products->at({span.count, span.src_step, lanes, channels})(
              as.data(), bs.data(), sum + (kh * c.kernel_w + span.kernel) * lanes, count);
        }
      }
    }
  }

  /// Adds the products of a 1 x 1 kernel, some source channels at a time.
  void add_copied(const Span& span, int64_t lanes, int64_t channels, const Rows& as, const Rows& bs,
                  int64_t count, float* sum) const {
    std::array<float, kPixels * kDistance> pixels;
    for (int64_t first = 0; first < channels; first += kCopied) {
      const int64_t width = std::min(kCopied, channels - first);
      Rows copies;
      float* to = pixels.data();
      for (int64_t row = 0; row < count; ++row) {
        copies[size_t(row)] = to;
        for (int64_t i = 0; i < span.count; ++i, to += kDistance) {
          std::copy_n(bs[size_t(row)] + first + i * w->distance(span), width, to);
        }
      }
      products->at({span.count, span.src_step, lanes, width})(as.data(), copies.data(),
                                                              sum + first * lanes, count);
    }
  }
};

/// Adds the parts of a block of lanes, in order, and writes them as (outputs, depth).
struct UnpackKernel {
  std::shared_ptr<const SumBlocks> w;
  ConvGeometry original;  // before unfold()
  const float* partial;
  float* out;
  Gradient gradient;
  const RunContext* run;
  SumRows rows_are;

  /// Adds the sums of some outputs whose lanes are source channels starting at `first`.
  void add_turned(const float* sums, int64_t rows, int64_t height, int64_t lanes, float* to) const {
    const int64_t depth = original.channels / original.group;
    const bool add = gradient.adds(*run);
    for (int64_t r = 0; r < rows; ++r, sums += height, to += depth) {
      if (add) {
        for (int64_t l = 0; l < lanes; ++l) to[l] += sums[l];
      } else {
        std::copy_n(sums, lanes, to);
      }
    }
  }

  void operator()(int block) const {
    constexpr int64_t kRows = 64;
    const int64_t b = block % w->lanes.count, group = block / w->lanes.count;
    const int64_t lanes = w->lanes.lanes(b), height = w->lanes.height(b), depth = w->depth();
    const int64_t o0 = group * w->c.group_out() + w->lanes.begin(b);
    const float* const sums = partial + (group * w->lanes.heights() + w->lanes.begin(b)) * depth;
    const bool turned = rows_are == SumRows::kOutputs;
    const bool add = gradient.adds(*run), permuted = rows_are == SumRows::kUnfolded;
    for (int64_t d0 = 0; d0 < depth; d0 += kRows) {
      const int64_t rows = std::min(kRows, depth - d0);
      std::array<float, kRows * LaneBlocks::kLanes> sum, columns;
      const float* from = sums + d0 * height;
      for (int64_t l = 0; l < lanes && !permuted && !turned; ++l) {
        float* const to = out + (o0 + l) * depth + d0;
        for (int64_t r = 0; r < rows; r += kCacheLine) prefetch_to_write(to + r);
      }
      std::copy_n(from, rows * height, sum.data());
      for (int64_t part = 1; part < w->parts; ++part) {
        for (int64_t i = 0; i < rows * height; ++i) sum[size_t(i)] += from[part * w->size() + i];
      }
      if (turned) {
        const int64_t first = (group * depth + d0) * (original.channels / original.group);
        add_turned(sum.data(), rows, height, lanes, out + first + w->lanes.begin(b));
        continue;
      }
      transpose_tiles(sum.data(), rows, lanes, height, columns.data(), rows);
      std::array<int64_t, kRows> places;
      for (int64_t r = 0; r < rows && permuted; ++r) places[size_t(r)] = folded(original, d0 + r);
      for (int64_t l = 0; l < lanes; ++l) {
        float* to = out + (o0 + l) * depth;
        const float* const own = columns.data() + l * rows;
        if (permuted) {
          for (int64_t r = 0; r < rows; ++r) put(to + places[size_t(r)], own[r], add);
        } else if (add) {
          for (int64_t r = 0; r < rows; ++r) to[d0 + r] += own[r];
        } else {
          std::copy_n(own, rows, to + d0);
        }
      }
    }
  }
};

}  // namespace

void unpack_sums(Program& p, const std::string& name, const ConvGeometry& g,
                 const std::shared_ptr<const SumBlocks>& w, BufferId partial, Gradient diff_weights,
                 SumRows rows_are) {
  Step unpack = unpack_step(p, name, w->parts, partial, diff_weights);
  unpack.make = [=, write = unpack.writes[0]](const Binder& at) {
    return Kernel{int(g.group * w->lanes.count),
                  UnpackKernel{w, g, at(partial), at(write), diff_weights, at.run(), rows_are}};
  };
  p.step(std::move(unpack));
}

void backward_weights(Program& p, const std::string& name, const ConvGeometry& g, TensorId src,
                      TensorId diff_dst, Gradient diff_weights) {
  const bool unfolds = narrow(g);
  const auto w = std::make_shared<const WeightGradient>(unfolds ? unfolded(g) : g);
  const BufferId in = unfolds ? unfold(p, name, g, src) : p.read(src, Layout::kChannels);
  const BufferId partial = p.scratch(w->parts * w->size());
  Step step;
  step.name = name;
  step.kernel = "brgemm NSC, lanes are channels (" + w->c.widths() + "), " +
                std::to_string(w->parts) + " parts";
  step.flops = g.flops();
  step.reads = {in, p.read(diff_dst, Layout::kChannels)};
  step.writes = {partial};
  step.make = [=, reads = step.reads](const Binder& at) {
    const auto products = std::make_shared<const WeightProducts>(generate(*w));
    return Kernel{int(w->blocks()),
                  PartKernel{w, products, at(reads[0]), at(reads[1]), at(partial)}};
  };
  p.step(std::move(step));
  unpack_sums(p, name, g, w, partial, diff_weights,
              unfolds ? SumRows::kUnfolded : SumRows::kSources);
}

}  // namespace cafetiere::channels_last
