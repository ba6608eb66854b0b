// SPDX-License-Identifier: Apache-2.0
// The channels-last weight gradient in bfloat16: products that sum over pixels. The source is
// rearranged to a row of pixels per channel, and the output gradient to pairs of pixels, so that
// each kernel element uses the same rows at another offset. For 1 x 1 kernels with the wider
// source, the operands are swapped, since pairs are cheaper. Sources with few channels are unfolded
// first, so that their channels fill tiles.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/device/cpu/bf16_pack.h"
#include "core/device/cpu/channels_last_bf16_patches.h"
#include "core/device/cpu/channels_last_bf16_strips.h"

namespace cafetiere::channels_last {
namespace {

using channels_last_bf16::RowUnfolder;

constexpr int64_t kMostPairs = 4;  // blocks of lanes laid out in pairs together
constexpr int64_t kPairSize = (kMostPixels + bf16::kTileDepth) * LaneBlocks::kLanes;
constexpr int64_t kTogetherPixels = 8;  // transposed to columns
static_assert(kTogetherPixels <= kOverrun);
constexpr int64_t kAhead = 32;       // prefetch distance in pixels when pairing
constexpr int64_t kMostShift = 256;  // pixels between the first and last element of a kernel

/// The addresses of an operand's pixels, by place in the grid of outputs.
struct Pixels {
  const uint16_t* at;
  int64_t channels;  // distance between pixels
  int64_t in_h, in_w;
};

/// `images` from `image` on, `rows` output rows from row0 on, `width` columns from col0 on.
struct Strip {
  int64_t image, images, row0, rows, col0, width;
};

/// Sums one block.
struct StripKernel {
  std::shared_ptr<const Strips> w;
  Pixels src, diff;  // the operands that become rows and pairs
  float* partial;
  float* gradient;  // written directly if each sum is a single product
  Gradient accumulates;
  const RunContext* run;

  void operator()(int index) const {
    const Correlation& c = w->c;
    const SumBlocks::Block of = w->block(index);
    float* const sums = gradient ? nullptr : w->zero(partial, index);
    const bf16::TileScope scope;
    alignas(64) std::array<uint16_t, kSourceSize> source;
    // Reads between lines are finite.
    std::fill_n(source.begin(), of.channels * w->channel_size, uint16_t(0));
    alignas(64) std::array<uint16_t, kMostPairs * kPairSize> pairs;
    std::optional<RowUnfolder> unfolder;
    if (w->unfolded_row) unfolder.emplace(*w->unfolded_row);
    const int64_t end = (of.part + 1) * c.n / w->parts;
    for (int64_t n = of.part * c.n / w->parts; n < end; n += w->images) {
      for (int64_t row = 0; row < c.out_h; row += w->height) {
        for (int64_t col = 0; col < c.out_w; col += w->width) {
          const Strip strip{n,   std::min(w->images, end - n),
                            row, std::min(w->height, c.out_h - row),
                            col, std::min(w->width, c.out_w - col)};
          const int64_t first = of.group * c.group_in() + of.first;
          lay_out(strip, first, of.channels, unfolder, source.data());
          for (int64_t b = of.b0; b < of.b1; ++b) {
            const int64_t held = (b - of.b0) % kMostPairs;
            if (held == 0) {
              const int64_t most = std::min(of.b1, b + kMostPairs);
              lay_out_pairs(strip, of.group * w->lanes.channels, b, most, pairs.data());
            }
            if (gradient) {
              const bool add = n + row + col > 0 || accumulates.adds(*run);
              multiply(strip, b, of.channels, source.data(), pairs.data() + held * kPairSize,
                       gradient + of.first * w->lanes.channels + w->lanes.begin(b),
                       w->lanes.channels, add);
              continue;
            }
            multiply(strip, b, of.channels, source.data(), pairs.data() + held * kPairSize,
                     w->sum(sums, b, of.first), w->lanes.height(b), true);
          }
        }
      }
    }
  }

  /// Lays out the channels of a strip's source pixels: [channel][phase][image][row][column].
  void lay_out(const Strip& strip, int64_t first, int64_t channels,
               std::optional<RowUnfolder>& unfolder, uint16_t* to) const {
    const int64_t lines = std::min(w->lines, strip.rows + w->rows.most_shift);
    for (size_t i = 0; i < w->rows.phases.size(); ++i) {
      for (size_t j = 0; j < w->cols.phases.size(); ++j) {
        uint16_t* phase = to + int64_t(i * w->cols.phases.size() + j) * w->phase_size();
        for (int64_t n = strip.image; n < strip.image + strip.images; ++n) {
          const uint16_t* const image = src.at + n * src.in_h * src.in_w * src.channels;
          for (int64_t r = 0; r < lines; ++r) {
            const int64_t ih = w->rows.source(i, strip.row0 + r);
            const uint16_t* const row = ih < 0 ? nullptr : image + ih * src.in_w * src.channels;
            uint16_t* const line = phase + r * w->pitch;
            if (unfolder)
              (*unfolder)(row, {strip.col0, w->pitch, first, channels, line, w->channel_size});
            else
              lay_out_row(row ? row + first : nullptr, j, strip.col0, channels, line);
          }
          phase += w->lines * w->pitch;
        }
        if (!unfolder) continue;
        // The padding below the last image, where its last row was written too far.
        for (int64_t ch = 0; ch < channels; ++ch) {
          std::fill_n(phase + ch * w->channel_size, kOverrun, uint16_t(0));
        }
      }
    }
  }

  /// Lays out one row: transposes pixels to columns, in tiles of 8 x 8.
  void lay_out_row(const uint16_t* row, size_t phase, int64_t col0, int64_t channels,
                   uint16_t* to) const {
    const int64_t distance = w->channel_size;
    const Axis& cols = w->cols;
    const int64_t first = cols.phases[phase] - cols.pad, step = cols.stride * src.channels;
    for (int64_t j = 0; j < w->pitch; j += kTogetherPixels) {
      const int64_t begin = (col0 + j) * cols.stride + first;
      const bool inside = row && begin >= 0 && begin + 7 * cols.stride < cols.in;
      const uint16_t* const from = inside ? row + begin * src.channels : nullptr;
      std::array<const uint16_t*, kTogetherPixels> pixels{};
      for (size_t i = 0; i < kTogetherPixels; ++i) {
        if (inside) {
          pixels[i] = from + int64_t(i) * step;
        } else if (const int64_t iw = cols.source(phase, col0 + j + int64_t(i)); row && iw >= 0) {
          pixels[i] = row + iw * src.channels;
        }
      }
      fetch(from, step, channels);
      int64_t ch = 0;
      for (; ch + 8 <= channels; ch += 8) {
        lay_out_tile(pixels, ch, std::integral_constant<int64_t, 8>(), to + ch * distance + j);
      }
      if (ch < channels) lay_out_tile(pixels, ch, channels - ch, to + ch * distance + j);
    }
  }

  /// Prefetches the pixels after those at `from`.
  static void fetch(const uint16_t* from, int64_t step, int64_t channels) {
    if (!from) return;
    for (int64_t i = kTogetherPixels; i < 2 * kTogetherPixels; ++i) {
      for (int64_t ch = 0; ch < channels; ch += 32) __builtin_prefetch(from + i * step + ch);
    }
  }

  /// Transposes `high` channels of some pixels; pixels in the padding are null. Also writes those
  /// beyond the end of a row, which are overwritten later.
  template <class High>
  void lay_out_tile(const std::array<const uint16_t*, kTogetherPixels>& pixels, int64_t ch,
                    High high, uint16_t* to) const {
    const int64_t distance = w->channel_size;
    bf16::Eight tile[8] = {};
    for (size_t i = 0; i < 8; ++i) {
      if (pixels[i]) std::memcpy(&tile[i], pixels[i] + ch, size_t(high) * sizeof(uint16_t));
    }
    bf16::transpose(tile);
    for (int64_t i = 0; i < high; ++i) std::memcpy(to + i * distance, &tile[i], sizeof tile[i]);
  }

  /// Lays out the other operand's pixels in pairs, for blocks of lanes [b0, b1), with zeros for
  /// places that only the source has.
  void lay_out_pairs(const Strip& strip, int64_t first, int64_t b0, int64_t b1,
                     uint16_t* to) const {
    const int64_t step = w->pair_cols.stride * diff.channels, begin = w->lanes.begin(b0);
    const uint16_t* even = nullptr;  // first pixel of an incomplete pair
    int64_t place = 0;
    const auto add = [&](const uint16_t* pixel) {
      if (place++ % 2 == 0) return void(even = pixel);
      for (int64_t b = b0; b < b1; ++b) {
        const int64_t lanes = w->lanes.lanes(b), height = w->lanes.height(b);
        const int64_t at = w->lanes.begin(b) - begin;
        if (even) __builtin_prefetch(even + at + kAhead * step);
        if (pixel) __builtin_prefetch(pixel + at + kAhead * step);
        bf16::pair_rows(even ? even + at : nullptr, pixel ? pixel + at : nullptr, lanes, height,
                        to + (b - b0) * kPairSize + (place - 2) * height);
      }
    };
    const int64_t depth = depth_of(strip), rows = w->apart ? strip.rows : w->lines;
    int64_t end = depth;
    for (int64_t n = strip.image; n < strip.image + strip.images; ++n) {
      for (int64_t row = 0; row < rows && place < end; ++row) {
        const int64_t y = row < strip.rows ? w->pair_rows.source(0, strip.row0 + row) : -1;
        const uint16_t* const line =
            diff.at + (n * diff.in_h + y) * diff.in_w * diff.channels + first + begin;
        for (int64_t col = 0; col < w->pitch && place < end; ++col) {
          const int64_t x = col < strip.width ? w->pair_cols.source(0, strip.col0 + col) : -1;
          add(y < 0 || x < 0 ? nullptr : line + x * diff.channels);
        }
      }
      if (!w->apart) continue;
      while (place < end) add(nullptr);
      end += depth;
    }
    while (place < end && !w->apart) add(nullptr);
  }

  /// The number of places that a product sums over: whole steps.
  int64_t depth_of(const Strip& strip) const {
    if (w->apart) return w->run(strip.rows, strip.width);
    return w->run((strip.images - 1) * w->lines + strip.rows, strip.width);
  }

  /// The start of a kernel element's source within a channel.
  int64_t element_at(int64_t kh, int64_t kw) const {
    const auto [row_phase, row_shift] = w->rows.at[size_t(kh)];
    const auto [col_phase, col_shift] = w->cols.at[size_t(kw)];
    const int64_t phase = row_phase * int64_t(w->cols.phases.size()) + col_phase;
    return phase * w->phase_size() + row_shift * w->pitch + col_shift;
  }

  /// Consecutive kernel elements' sums are `distance` apart.
  void multiply(const Strip& strip, int64_t b, int64_t channels, const uint16_t* source,
                const uint16_t* pairs, float* sum, int64_t distance, bool add) const {
    const int64_t height = w->lanes.height(b), taps = w->c.kernel_size(), depth = depth_of(strip);
    Bf16Product product(height, 0, depth, height, w->channel_size, taps * distance, add);
    product.whole_rows = true;
    const int64_t runs = w->apart ? strip.images : 1;
    std::array<const uint16_t*, kMostRuns> as, bs;
    for (int64_t i = 0; i < runs; ++i) as[size_t(i)] = pairs + i * depth * height;
    // A few channels at a time, which stay in the L1 cache for all kernel elements.
    for (int64_t ch = 0; ch < channels; ch += product.n) {
      product.n = std::min(2 * bf16::kTileRows, channels - ch);
      for (int64_t kh = 0; kh < w->c.kernel_h; ++kh) {
        for (int64_t kw = 0; kw < w->c.kernel_w; ++kw) {
          const uint16_t* const from = source + ch * w->channel_size + element_at(kh, kw);
          for (int64_t i = 0; i < runs; ++i) bs[size_t(i)] = from + i * w->lines * w->pitch;
          product(as.data(), bs.data(), sum + (ch * taps + kh * w->c.kernel_w + kw) * distance,
                  runs);
        }
      }
    }
  }
};

/// Whether to swap the operands: also if there are few pixels, because sums can then be written in
/// place.
bool turns(const ConvGeometry& g) {
  constexpr int64_t kFew = 2048;
  return g.kernel_size() == 1 && (g.channels > g.outputs || g.n * g.out_pixels() <= kFew);
}

/// The 1 x 1 convolution `g` with swapped operands: its source is the output gradient of `g`.
ConvGeometry turned(const ConvGeometry& g) {
  ConvGeometry t = g;
  std::swap(t.channels, t.outputs);
  t.in = g.out;
  t.stride = {1, 1}, t.pad = {0, 0};
  return t;
}

/// The geometry by which Strips reads the operand in pairs: one kernel element, at each output.
ConvGeometry one_to_one(const ConvGeometry& g) {
  ConvGeometry o = g;
  o.in = g.out;
  o.kernel = o.stride = o.dilation = {1, 1};
  o.pad = {0, 0};
  return o;
}

std::shared_ptr<const Strips> strips(const ConvGeometry& g) {
  if (channels_last_bf16::unfolds(g)) {
    const ConvGeometry u = unfolded(g);
    return std::make_shared<const Strips>(u, Axis(u, 0), Axis(u, 1), one_to_one(u), g);
  }
  if (!turns(g)) return std::make_shared<const Strips>(g, Axis(g, 0), Axis(g, 1), one_to_one(g));
  const ConvGeometry t = turned(g);
  return std::make_shared<const Strips>(t, Axis(t, 0), Axis(t, 1), g);
}

}  // namespace
}  // namespace cafetiere::channels_last

namespace cafetiere::channels_last_bf16 {

using namespace channels_last;

std::string declines_backward_weights(const ConvGeometry& g) {
  const std::string reason = declines(g);
  if (!reason.empty() || has_short_patches(g)) return reason;
  const ConvGeometry u = unfolds(g) ? unfolded(g) : g;
  const Axis rows(u, 0), cols(u, 1);
  const bool fits = std::max(rows.most_shift, cols.most_shift) <= kMostShift &&
                    least_size(rows, cols) <= kSourceSize / (2 * bf16::kTileRows);
  return fits ? "" : "a kernel over too many pixels";
}

void backward_weights(Program& p, const std::string& name, const ConvGeometry& g, TensorId src,
                      TensorId diff_dst, Gradient diff_weights) {
  if (has_short_patches(g)) {
    return patch_backward_weights(p, name, g, src, diff_dst, diff_weights);
  }
  const bool swaps = turns(g), wide = unfolds(g);
  const auto w = strips(g);
  const Version version(Layout::kChannels, Format::kBFloat16);
  const BufferId in = p.read(src, version);
  const bool whole =
      swaps && w->parts == 1 && g.group == 1 && g.channels % Bf16Product::kVector == 0;
  Step step;
  step.name = name;
  step.kernel = "bfloat16 products NSC, lanes are " +
                std::string(swaps ? "source channels (" : "channels (") +
                channel_widths(g.channels / g.group, g.outputs / g.group) +
                (wide ? ", unfolded" : "") +
                (whole ? ")" : "), " + std::to_string(w->parts) + " parts");
  step.flops = g.flops();
  step.reads = {in, p.read(diff_dst, version)};
  const BufferId sums =
      whole ? p.write(diff_weights.tensor, Layout::kRowMajor) : p.scratch(w->parts * w->size());
  step.writes = {sums};
  step.make = [=, reads = step.reads](const Binder& at) {
    Pixels source{at.as<uint16_t>(reads[0]), g.channels, g.in[0], g.in[1]};
    Pixels diff{at.as<uint16_t>(reads[1]), g.outputs, g.out[0], g.out[1]};
    if (swaps) std::swap(source, diff);
    return Kernel{
        int(w->blocks()),
        StripKernel{w, source, diff, at(sums), whole ? at(sums) : nullptr, diff_weights, at.run()}};
  };
  p.step(std::move(step));
  if (whole) return;
  const SumRows rows = wide ? SumRows::kUnfolded : swaps ? SumRows::kOutputs : SumRows::kSources;
  unpack_sums(p, name, g, w, sums, diff_weights, rows);
}

}  // namespace cafetiere::channels_last_bf16
