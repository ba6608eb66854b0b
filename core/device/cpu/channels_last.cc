// SPDX-License-Identifier: Apache-2.0
// Channels-last convolution over N S C tensors: products of a block of output channels with the
// pixels of an output row, one per kernel element.
#include "core/device/cpu/channels_last.h"

#include <array>
#include <limits>
#include <map>
#include <memory>

#include "core/device/cpu/biased_step.h"
#include "core/device/cpu/brgemm.h"
#include "core/device/cpu/lane_chunks.h"
#include "core/device/cpu/whole_pieces.h"
#include "core/device/transpose.h"

namespace cafetiere::channels_last {
namespace {

constexpr int64_t kColumns = 48;      // output pixels per product
constexpr int64_t kTilePixels = 196;  // output pixels per block: their sums fit into the L2 cache
constexpr int64_t kFewBlocks = 16;    // with fewer blocks, output channels and rows are divided too
constexpr int64_t kMaxRows = 64;      // kernel rows per call
constexpr int64_t kRowsAhead = 8;     // prefetch distance when packing 1 x 1 weights
constexpr int64_t kImages = 8;        // with fewer, a vector of images would be partly empty

/// Whether channels fill vectors of 8, or are so many that a partial last vector does not matter.
bool fills(int64_t channels) { return channels % 8 == 0 || channels >= 64; }

/// Products that differ only in the number of lanes.
struct Products {
  Brgemm whole, last;
};

/// A run of output pixels that use one kernel column, and its product.
struct Run {
  Span span;
  const Products* products;
};

/// A correlation divided into blocks: (image, tile of rows, tile of columns, range of output
/// channels).
struct Tiling {
  Correlation c;
  int64_t pixel;  // distance between output pixels
  LaneBlocks lanes;
  bool flipped;  // tap indices count from the end of the kernel
  bool single;   // each output pixel uses one kernel column, so products overwrite a row
  bool direct;   // and one tap, with nothing to add: products are written in place
  int64_t row_tiles, col_tiles, out_parts;
  std::vector<std::vector<Run>> runs;    // per tile of columns
  std::map<int64_t, Products> products;  // keyed by (columns, steps)

  Tiling(Correlation correlation, int64_t pixel, bool backward, bool plain)
      : c(std::move(correlation)),
        pixel(pixel),
        lanes(c.group_out()),
        flipped(backward),
        single(c.kernel_w == 1 && has_taps(c.rows) && has_taps(c.cols)),
        direct(single && c.kernel_h == 1 && plain && c.group_in() <= Brgemm::kDepth) {
    col_tiles = parts_of(c.out_w, kColumns);
    const int64_t width = parts_of(c.out_w, col_tiles);
    row_tiles = parts_of(c.out_h, std::clamp<int64_t>(kTilePixels / width, 1, c.out_h));
    out_parts = std::clamp<int64_t>(kFewBlocks / (c.n * row_tiles * col_tiles), 1, lanes.count);
    row_tiles = std::min(c.out_h, row_tiles * more());
    for (int64_t t = 0; t < col_tiles; ++t) runs.push_back(column_runs(t));
  }

  int64_t blocks() const { return c.n * row_tiles * col_tiles * out_parts; }
  int64_t width(int64_t tile) const { return first_column(tile + 1) - first_column(tile); }
  int64_t first_column(int64_t tile) const { return tile * c.out_w / col_tiles; }
  int64_t first_row(int64_t tile) const { return tile * c.out_h / row_tiles; }
  /// The row of packed weights of a kernel element.
  int64_t tap(int64_t kh, int64_t kw) const {
    return flipped ? (c.kernel_h - 1 - kh) * c.kernel_w + c.kernel_w - 1 - kw
                   : kh * c.kernel_w + kw;
  }

  /// The factor by which tiles must increase to give about kFewBlocks blocks.
  int64_t more() const { return std::max<int64_t>(kFewBlocks / blocks(), 1); }
  static bool has_taps(const AxisTaps& taps) {
    return std::ranges::none_of(taps, [](const auto& of) { return of.empty(); });
  }
  std::vector<Run> column_runs(int64_t tile) {
    std::vector<Run> list;
    for (const Span& s : spans(c.cols, first_column(tile), first_column(tile + 1), c.kernel_w)) {
      list.push_back({s, &product(s)});
    }
    return list;
  }
  const Products& product(const Span& s) {
    const int64_t key = (s.count * (c.out_w + 1) + s.out_step) * (c.in_w + 1) + s.src_step;
    const auto generate = [&](int64_t rows) {
      const int64_t apart = direct ? pixel : rows;
      return Brgemm(rows, s.count, c.group_in(), c.kernel_size() * rows, s.src_step * c.in_channels,
                    s.out_step * apart, !single);
    };
    const auto [at, fresh] = products.try_emplace(key);
    if (fresh) {
      at->second.whole = generate(lanes.size);
      at->second.last = generate(lanes.lanes(lanes.count - 1));
    }
    return at->second;
  }
};

/// Runs a correlation, one block at a time.
struct CorrelationKernel {
  std::shared_ptr<const Tiling> t;
  const float *src, *weights, *bias;
  float* dst;
  bool relu;
  const float* addend = nullptr;  ///< see Ending

  void operator()(int block) const {
    const Correlation& c = t->c;
    const int64_t part = block % t->out_parts;
    const int64_t tile = block / t->out_parts % t->col_tiles;
    const int64_t row_tile = block / t->out_parts / t->col_tiles % t->row_tiles;
    const int64_t image = block / t->out_parts / t->col_tiles / t->row_tiles;
    const int64_t row0 = t->first_row(row_tile), row1 = t->first_row(row_tile + 1);
    const int64_t begin = part * t->lanes.count / t->out_parts;
    const int64_t end = (part + 1) * t->lanes.count / t->out_parts;
    for (int64_t g = 0; g < c.group; ++g) {
      for (int64_t b = begin; b < end; ++b) {
        Sums sums;
        const int64_t o0 = g * c.group_out() + t->lanes.begin(b), lanes = t->lanes.lanes(b);
        const float* in = src + image * c.in_h * c.in_w * c.in_channels + g * c.group_in();
        const float* w = weights + o0 * c.group_in() * c.kernel_size();
        float* out = dst + image * c.out_h * c.out_w * t->pixel + o0;
        fetch_to_write(row0, row1, tile, lanes, out);
        if (t->direct) {
          for (int64_t oh = row0; oh < row1; ++oh) {
            float* row = out + (oh * c.out_w + t->first_column(tile)) * t->pixel;
            add_taps(oh, oh + 1, tile, in, b, w, row, t->pixel);
          }
          continue;
        }
        if (!t->single) std::fill_n(sums.data(), (row1 - row0) * t->width(tile) * lanes, 0.f);
        add_taps(row0, row1, tile, in, b, w, sums.data(), lanes);
        store(row0, row1, tile, sums, lanes, bias ? bias + o0 : nullptr, out);
      }
    }
  }

  /// Prefetches the cache lines that store() will read and write while the products are computed.
  void fetch_to_write(int64_t row0, int64_t row1, int64_t tile, int64_t lanes, float* out) const {
    for (int64_t oh = row0; oh < row1; ++oh) {
      for (int64_t ow = t->first_column(tile); ow < t->first_column(tile + 1); ++ow) {
        float* to = out + (oh * t->c.out_w + ow) * t->pixel;
        for (int64_t l = 0; l < lanes; l += kCacheLine) {
          prefetch_to_write(to + l);
          if (addend && addend != dst) __builtin_prefetch(addend + (to - dst) + l);
        }
      }
    }
  }

  /// The sums of a tile, [pixel][lane]; contiguous, whatever the pixel distance in dst.
  using Sums = std::array<float, kTilePixels * LaneBlocks::kLanes>;

  /// Adds all taps to each output row of a tile, all kernel rows in one call; pixels in `sums` are
  /// `distance` floats apart.
  void add_taps(int64_t row0, int64_t row1, int64_t tile, const float* in, int64_t b,
                const float* w, float* sums, int64_t distance) const {
    const Correlation& c = t->c;
    const int64_t lanes = t->lanes.lanes(b), width = t->width(tile);
    for (int64_t oh = row0; oh < row1; ++oh) {
      for (const Run& run : t->runs[size_t(tile)]) {
        std::array<const float*, kMaxRows> as, bs;
        int64_t count = 0;
        for (const auto& [kh, ih] : c.rows[size_t(oh)]) {
          as[size_t(count)] = w + t->tap(kh, run.span.kernel) * lanes;
          bs[size_t(count++)] = in + (ih * c.in_w + run.span.src) * c.in_channels;
        }
        if (count == 0) continue;
        const int64_t pixel = (oh - row0) * width + run.span.out - t->first_column(tile);
        const Brgemm& product = lanes < t->lanes.size ? run.products->last : run.products->whole;
        product(as.data(), bs.data(), sums + pixel * distance, count);
      }
    }
  }

  /// Writes sums + bias, plus the addend if there is one, followed by ReLU if `relu`.
  void store(int64_t row0, int64_t row1, int64_t tile, const Sums& sums, int64_t lanes,
             const float* bias_at, float* out) const {
    std::array<float, LaneBlocks::kLanes> start{};
    if (bias_at) std::copy_n(bias_at, lanes, start.data());
    const float floor = relu ? 0.f : -std::numeric_limits<float>::infinity();
    const float* sum = sums.data();
    for (int64_t oh = row0; oh < row1; ++oh) {
      for (int64_t ow = t->first_column(tile); ow < t->first_column(tile + 1); ++ow) {
        float* to = out + (oh * t->c.out_w + ow) * t->pixel;
        for_each_chunk<kOctet>(lanes, [&](int64_t l, auto count) {
          Simd8 v = load_octet(sum + l, count) + load_octet(start.data() + l, count);
          if (addend) v += load_octet(addend + (to - dst) + l, count);
          store_octet(to + l, v < floor ? Simd8{} + floor : v, count);
        });
        sum += lanes;
      }
    }
  }
};

/// Packs weights (outputs, channels / group, kh, kw) as [block of lanes][depth][lane]. Forward,
/// depth is (channel, kh, kw); backward, lanes are the channels and depth is (output, kh, kw).
BufferId pack_weights(Program& p, const std::string& name, const ConvGeometry& g, TensorId weights,
                      bool backward) {
  const int64_t ins = g.channels / g.group, outs = g.outputs / g.group, taps = g.kernel_size();
  const LaneBlocks lanes(backward ? ins : outs);
  const bool permuted = !backward && narrow(g);
  const auto pack = [=](const float* w, float* to, int block) {
    const int64_t group = block / lanes.count, first = lanes.begin(block % lanes.count);
    const int64_t height = lanes.lanes(block % lanes.count);
    const float* from = w + group * outs * ins * taps;
    float* out = to + group * outs * ins * taps;
    if (backward) {
      out += first * outs * taps;
      const int64_t ahead = (kRowsAhead + taps - 1) / taps;
      for (int64_t o = 0; o < outs; ++o, out += taps * height) {
        const float* row = from + (o * ins + first) * taps;
        const float* later = row + ahead * ins * taps;
        for (int64_t i = 0; i < height * taps; i += kCacheLine) __builtin_prefetch(later + i);
        if (taps == 1)
          std::copy_n(row, height, out);
        else
          transpose_tiles(row, height, taps, taps, out, height);
      }
      return;
    }
    const int64_t depth = ins * taps;
    from += first * depth, out += first * depth;
    if (!permuted) return transpose_tiles(from, height, depth, depth, out, height);
    for (int64_t d = 0; d < depth; ++d) {
      for (int64_t l = 0; l < height; ++l) {
        out[d * height + l] = from[l * depth + folded(g, d)];
      }
    }
  };
  return pack_step(p, name, weights, weight_count(g), g.group * lanes.count, pack);
}

void emit(Program& p, const std::string& name, Correlation correlation, bool backward, BufferId src,
          BufferId packed, TensorId bias, TensorId dst, bool relu, double flops) {
  Step step = biased_step(p, name,
                          "brgemm NSC, lanes are channels (" + correlation.widths() +
                              (correlation.n < kImages ? ", few images)" : ")"),
                          flops, {src, packed}, bias, dst, Layout::kChannels);
  offer_places(step, correlation.out_channels, relu,
               [=, reads = step.reads](const Binder& at, const Place& to) {
                 const float* addend = to.addend == kNoBuffer ? nullptr : at(to.addend);
                 const bool plain = bias == kNoTensor && !to.relu && !addend;
                 const auto tiling =
                     std::make_shared<const Tiling>(correlation, to.channels, backward, plain);
                 return Kernel{int(tiling->blocks()),
                               CorrelationKernel{tiling, at(reads[0]), at(reads[1]),
                                                 bias == kNoTensor ? nullptr : at(reads[2]),
                                                 at(to.whole) + to.first, to.relu, addend}};
               });
  p.step(std::move(step));
}

}  // namespace

std::string declines(const ConvGeometry& g) {
  if (const std::string axes = not_planar(g); !axes.empty()) return axes;
  if (g.kernel[0] > kMaxRows) return std::to_string(g.kernel[0]) + " kernel rows";
  const int64_t in = g.channels / g.group, out = g.outputs / g.group;
  if (g.n < kImages || (fills(out) && (fills(in) || narrow(g)))) return {};
  return channel_widths(in, out) + " leave lanes empty";
}

std::string declines_backward_data(const ConvGeometry& g) {
  std::string reason = declines(g);
  if (!reason.empty() || !narrow(g) || g.n < kImages) return reason;
  if (!batch_innermost::declines(g).empty()) return {};
  return "a source of " + std::to_string(g.channels) + " channels leaves lanes empty";
}

bool narrow(const ConvGeometry& g) { return g.group == 1 && g.channels < 16 && g.kernel[1] > 1; }

ConvGeometry unfolded(const ConvGeometry& g) {
  ConvGeometry u = g;
  u.channels = g.channels * g.kernel[1];
  u.in[1] = g.out[1];
  u.kernel[1] = u.stride[1] = u.dilation[1] = 1;
  u.pad[1] = 0;
  return u;
}

namespace {

/// Copies the elements of a source row under a kernel row whose first column is source column
/// `first`. `room`: number of floats that may be written; those beyond the pixel's own are
/// overwritten later.
void unfold_pixel(const ConvGeometry& g, const float* from, int64_t first, float* to,
                  int64_t room) {
  const int64_t kernel = g.kernel[1], dilation = g.dilation[1], plane = g.in[0] * g.in[1];
  const int64_t octets = (kernel + kOctet - 1) / kOctet * kOctet;
  const bool whole = dilation == 1 && first >= 0 && first + octets <= g.in[1] &&
                     (g.channels - 1) * kernel + octets <= room;
  for (int64_t c = 0; c < g.channels; ++c, from += plane, to += kernel) {
    if (whole) {
      for (int64_t k = 0; k < octets; k += kOctet) {
        store_octet(to + k, load_octet(from + first + k, kOctet), kOctet);
      }
      continue;
    }
    for (int64_t k = 0; k < kernel; ++k) {
      const int64_t at = first + k * dilation;
      to[k] = at >= 0 && at < g.in[1] ? from[at] : 0.f;
    }
  }
}

}  // namespace

BufferId unfold(Program& p, const std::string& name, const ConvGeometry& g, TensorId src) {
  const int64_t width = g.channels * g.kernel[1];
  const BufferId target = p.scratch(g.n * g.in[0] * g.out[1] * width);
  Step step;
  step.name = name + " unfold";
  step.kernel = "NCS to kernel rows";
  step.reads = {p.read(src, Layout::kRowMajor)};
  step.writes = {target};
  step.make = [=, read = step.reads[0]](const Binder& at) {
    const float* x = at(read);
    float* u = at(target);
    return Kernel{int(g.n * g.in[0]), [=](int block) {
                    const int64_t image = block / g.in[0], row = block % g.in[0];
                    const float* from = x + (image * g.channels * g.in[0] + row) * g.in[1];
                    float* to = u + block * g.out[1] * width;
                    for (int64_t ow = 0; ow < g.out[1]; ++ow, to += width) {
                      unfold_pixel(g, from, ow * g.stride[1] - g.pad[1], to,
                                   (g.out[1] - ow) * width);
                    }
                  }};
  };
  p.step(std::move(step));
  return target;
}

void convolution(Program& p, const std::string& name, const ConvGeometry& g, TensorId src,
                 TensorId weights, TensorId bias, TensorId dst, bool relu) {
  const bool unfolds = narrow(g);
  const BufferId in = unfolds ? unfold(p, name, g, src) : p.read(src, Layout::kChannels);
  const BufferId packed = pack_weights(p, name, g, weights, false);
  emit(p, name, forward_correlation(unfolds ? unfolded(g) : g), false, in, packed, bias, dst, relu,
       g.flops());
}

void backward_data(Program& p, const std::string& name, const ConvGeometry& g, TensorId diff_dst,
                   TensorId weights, TensorId diff_src) {
  const BufferId in = p.read(diff_dst, Layout::kChannels);
  const BufferId packed = pack_weights(p, name, g, weights, true);
  emit(p, name, backward_correlation(g), true, in, packed, kNoTensor, diff_src, false, g.flops());
}

}  // namespace cafetiere::channels_last
