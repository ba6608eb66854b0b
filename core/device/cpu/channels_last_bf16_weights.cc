// SPDX-License-Identifier: Apache-2.0
// The channels-last weight gradient in bfloat16: products whose sums run over pixels. The source is laid
// out anew, a row of pixels a channel, and the output's gradient in pairs of pixels, so that each kernel
// element is the same rows from another pixel on.
#include <array>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "core/device/cpu/bf16_pack.h"
#include "core/device/cpu/channels_last_weights.h"

namespace cafetiere::channels_last {
namespace {

constexpr int64_t kMostChannels = 512;     // source channels a block
constexpr int64_t kSourceSize = 48 << 10;  // of the source laid out anew: it stays in the L2 cache
constexpr int64_t kMostPixels = 512;       // summed a product
constexpr int64_t kMostShift = 256;        // pixels between a kernel's first and last element

/// One axis: kernel element k reads padded source o * stride + k * dilation for output o. Sources are
/// stored by their remainder to the stride, a phase each, so that outputs read neighbours.
struct Axis {
  int64_t stride, pad, in, out;
  std::vector<int64_t> phases;             // remainders that occur
  std::vector<std::array<int64_t, 2>> at;  // by kernel element: place of its phase, and shift
  int64_t most_shift = 0;

  Axis(const ConvGeometry& g, size_t i)
      : stride(g.stride[i]), pad(g.pad[i]), in(g.in[i]), out(g.out[i]) {
    for (int64_t k = 0; k < g.kernel[i]; ++k) {
      const int64_t phase = k * g.dilation[i] % stride, shift = k * g.dilation[i] / stride;
      const auto known = std::ranges::find(phases, phase);
      at.push_back({known - phases.begin(), shift});
      if (known == phases.end()) phases.push_back(phase);
      most_shift = std::max(most_shift, shift);
    }
  }
  /// The source index of a place in a phase; -1 in the padding.
  int64_t source(size_t phase, int64_t place) const {
    const int64_t index = place * stride + phases[phase] - pad;
    return index >= 0 && index < in ? index : -1;
  }
};

/// The source that one output pixel needs of a channel.
int64_t least_size(const Axis& rows, const Axis& cols) {
  return int64_t(rows.phases.size() * cols.phases.size()) * (rows.most_shift + 1) *
         (cols.most_shift + 1);
}

/// The sums' blocks, and the output pixels cut into strips of rows and columns.
struct Strips : SumBlocks {
  Axis rows, cols;
  int64_t width, pitch, height;  // output columns, stored columns, output rows of a strip

  Strips(const ConvGeometry& g, Axis down, Axis across)
      : SumBlocks(g, Numbers<Bf16Product>::lanes(g.outputs / g.group),
                  std::clamp<int64_t>(kSourceSize / least_size(down, across), 1, kMostChannels)),
        rows(std::move(down)),
        cols(std::move(across)) {
    const int64_t channels = (c.group_in() + sources - 1) / sources;
    const int64_t places = kSourceSize / channels / phases();
    width = std::clamp<int64_t>(places / (rows.most_shift + 1) - cols.most_shift, 1,
                                std::min(c.out_w, kMostPixels));
    pitch = width + cols.most_shift;
    height = std::clamp<int64_t>(places / pitch - rows.most_shift, 1,
                                 std::min(c.out_h, std::max<int64_t>(1, kMostPixels / pitch)));
  }
  explicit Strips(const ConvGeometry& g) : Strips(g, Axis(g, 0), Axis(g, 1)) {}

  int64_t phases() const { return int64_t(rows.phases.size() * cols.phases.size()); }
  /// Elements of a phase, and of a channel.
  int64_t phase_size() const { return (height + rows.most_shift) * pitch; }
  int64_t channel_size() const { return phases() * phase_size(); }
};

/// One strip: `rows` output rows from row0 on, `width` columns from col0 on.
struct Strip {
  int64_t row0, rows, col0, width;
};

/// Sums one block.
struct StripKernel {
  std::shared_ptr<const Strips> w;
  const uint16_t *src, *diff;
  float* partial;

  void operator()(int index) const {
    const Correlation& c = w->c;
    const SumBlocks::Block of = w->block(index);
    float* const sums = w->zero(partial, index);
    const bf16::TileScope scope;
    std::array<uint16_t, kSourceSize> source;
    std::array<uint16_t, (kMostPixels + kMostShift + 1) * LaneBlocks::kLanes> pairs;
    for (int64_t n = of.part * c.n / w->parts; n < (of.part + 1) * c.n / w->parts; ++n) {
      const uint16_t* dy = diff + n * c.out_h * c.out_w * c.out_channels + of.group * c.group_out();
      const uint16_t* x =
          src + n * c.in_h * c.in_w * c.in_channels + of.group * c.group_in() + of.first;
      for (int64_t row = 0; row < c.out_h; row += w->height) {
        for (int64_t col = 0; col < c.out_w; col += w->width) {
          const Strip strip{row, std::min(w->height, c.out_h - row), col,
                            std::min(w->width, c.out_w - col)};
          lay_out(strip, x, of.channels, source.data());
          for (int64_t b = of.b0; b < of.b1; ++b) {
            lay_out_pairs(strip, dy + w->lanes.begin(b), b, pairs.data());
            multiply(strip, b, of.channels, source.data(), pairs.data(), w->sum(sums, b, of.first));
          }
        }
      }
    }
  }

  /// The channels of the source pixels that a strip needs: [channel][phase][row][column].
  void lay_out(const Strip& strip, const uint16_t* x, int64_t channels, uint16_t* to) const {
    const int64_t rows = strip.rows + w->rows.most_shift;
    for (size_t i = 0; i < w->rows.phases.size(); ++i) {
      for (size_t j = 0; j < w->cols.phases.size(); ++j) {
        uint16_t* const phase = to + int64_t(i * w->cols.phases.size() + j) * w->phase_size();
        for (int64_t r = 0; r < rows; ++r) {
          const int64_t ih = w->rows.source(i, strip.row0 + r);
          const uint16_t* row = ih < 0 ? nullptr : x + ih * w->c.in_w * w->c.in_channels;
          lay_out_row(row, j, strip.col0, channels, phase + r * w->pitch);
        }
      }
    }
  }

  /// One row: pixels become columns, in tiles of 8 x 8.
  void lay_out_row(const uint16_t* row, size_t phase, int64_t col0, int64_t channels,
                   uint16_t* to) const {
    const int64_t distance = w->channel_size();
    for (int64_t j = 0; j < w->pitch; j += 8) {
      const int64_t count = std::min<int64_t>(8, w->pitch - j);
      std::array<const uint16_t*, 8> pixels{};
      for (int64_t i = 0; i < count && row; ++i) {
        const int64_t iw = w->cols.source(phase, col0 + j + i);
        if (iw >= 0) pixels[size_t(i)] = row + iw * w->c.in_channels;
      }
      int64_t ch = 0;
      constexpr std::integral_constant<int64_t, 8> kWhole;
      for (; ch + 8 <= channels && count == 8; ch += 8) {
        lay_out_tile(pixels, ch, kWhole, kWhole, to + ch * distance + j);
      }
      for (; ch < channels; ch += 8) {
        lay_out_tile(pixels, ch, std::min<int64_t>(8, channels - ch), count,
                     to + ch * distance + j);
      }
    }
  }

  /// `high` channels of `count` pixels, of which those in the padding are null; constants if both are 8.
  template <class High, class Count>
  void lay_out_tile(const std::array<const uint16_t*, 8>& pixels, int64_t ch, High high,
                    Count count, uint16_t* to) const {
    bf16::Eight tile[8] = {};
    for (size_t i = 0; i < 8; ++i) {
      if (pixels[i]) std::memcpy(&tile[i], pixels[i] + ch, size_t(high) * sizeof(uint16_t));
    }
    bf16::transpose(tile);
    for (int64_t i = 0; i < high; ++i) {
      std::memcpy(to + i * w->channel_size(), &tile[i], size_t(count) * sizeof(uint16_t));
    }
  }

  /// The gradients of a strip's pixels, with zeros for the columns that only the source has.
  void lay_out_pairs(const Strip& strip, const uint16_t* dy, int64_t b, uint16_t* to) const {
    const int64_t lanes = w->lanes.lanes(b), height = w->lanes.height(b);
    const auto pixel = [&](int64_t place) -> const uint16_t* {
      const int64_t row = place / w->pitch, col = place % w->pitch;
      if (row >= strip.rows || col >= strip.width) return nullptr;
      return dy + ((strip.row0 + row) * w->c.out_w + strip.col0 + col) * w->c.out_channels;
    };
    for (int64_t place = 0; place < pixels(strip); place += 2, to += 2 * height) {
      bf16::pair_rows(pixel(place), pixel(place + 1), lanes, height, to);
    }
  }

  int64_t pixels(const Strip& strip) const { return (strip.rows - 1) * w->pitch + strip.width; }

  void multiply(const Strip& strip, int64_t b, int64_t channels, const uint16_t* source,
                const uint16_t* pairs, float* sum) const {
    const int64_t height = w->lanes.height(b), taps = w->c.kernel_size();
    const Bf16Product product(height, channels, pixels(strip), height, w->channel_size(),
                              taps * height, true);
    for (int64_t kh = 0; kh < w->c.kernel_h; ++kh) {
      for (int64_t kw = 0; kw < w->c.kernel_w; ++kw) {
        const auto [row_phase, row_shift] = w->rows.at[size_t(kh)];
        const auto [col_phase, col_shift] = w->cols.at[size_t(kw)];
        const int64_t phase = row_phase * int64_t(w->cols.phases.size()) + col_phase;
        const uint16_t* const from =
            source + phase * w->phase_size() + row_shift * w->pitch + col_shift;
        product(&pairs, &from, sum + (kh * w->c.kernel_w + kw) * height, 1);
      }
    }
  }
};

}  // namespace
}  // namespace cafetiere::channels_last

namespace cafetiere::channels_last_bf16 {

using namespace channels_last;

std::string declines_backward_weights(const ConvGeometry& g) {
  const std::string reason = declines(g);
  if (!reason.empty()) return reason;
  const Axis rows(g, 0), cols(g, 1);
  const bool fits = std::max(rows.most_shift, cols.most_shift) <= kMostShift &&
                    least_size(rows, cols) <= kSourceSize;
  return fits ? "" : "a kernel over too many pixels";
}

void backward_weights(Program& p, const std::string& name, const ConvGeometry& g, TensorId src,
                      TensorId diff_dst, Gradient diff_weights) {
  const bool unfolds = narrow(g);
  const auto w = std::make_shared<const Strips>(unfolds ? unfolded(g, 2) : g);
  const Version version(Layout::kChannels, Format::kBFloat16);
  const BufferId in = unfolds ? unfold<Bf16Product>(p, name, g, src) : p.read(src, version);
  const BufferId partial = p.scratch(w->parts * w->size());
  Step step;
  step.name = name;
  step.kernel = "bfloat16 products NSC, lanes are channels (" + w->c.widths() + "), " +
                std::to_string(w->parts) + " parts";
  step.flops = g.flops();
  step.reads = {in, p.read(diff_dst, version)};
  step.writes = {partial};
  step.make = [=, reads = step.reads](const Binder& at) {
    return Kernel{int(w->blocks()), StripKernel{w, at.as<uint16_t>(reads[0]),
                                                at.as<uint16_t>(reads[1]), at(partial)}};
  };
  p.step(std::move(step));
  unpack_sums(p, name, g, w, partial, diff_weights);
}

}  // namespace cafetiere::channels_last_bf16
