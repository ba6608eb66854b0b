// SPDX-License-Identifier: Apache-2.0
// Convolution in bfloat16, forward and data gradient: products of a panel of weights with a line of
// pixels laid out by Window.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>

#include "core/device/cpu/bf16_pack.h"
#include "core/device/cpu/bf16_round.h"
#include "core/device/cpu/bf16_window.h"
#include "core/device/cpu/biased_step.h"
#include "core/device/transpose.h"

namespace cafetiere::channels_last_bf16 {
namespace {

using bf16::Window;
using bf16::WindowAxis;
using channels_last::LaneBlocks;

constexpr int64_t kTogether = 64;     // pixels per product; their sums stay in the L1 cache
constexpr int64_t kFewTogether = 32;  // the same where kernel rows outside the source are skipped
constexpr int64_t kMostRuns = 64;     // runs per product
constexpr int64_t kMostTaps = 256;    // taps per kernel
constexpr int64_t kFewTaps = 16;      // kernels up to this size pack 8 channels at a time

/// The outputs of a pair of classes, and their products.
struct Part {
  const WindowAxis::Class *row, *col;
  std::vector<int64_t> from;  // the start of each run, relative to an output's place
  std::vector<int64_t> down;  // the shift of each run's row
  int64_t packed;             // the start of the first run's weights, in numbers per lane
  int64_t depth;
  std::array<Bf16Product, 2> products;  // of whole panels, and of the last
};

struct Plan {
  Window w;
  std::vector<Part> parts;

  explicit Plan(Window window) : w(std::move(window)) {
    int64_t packed = 0;
    for (const WindowAxis::Class& row : w.rows.classes) {
      for (const WindowAxis::Class& col : w.cols.classes) {
        Part& part =
            parts.emplace_back(Part{&row, &col, places(row, col), {}, packed, w.depth(col), {}});
        for (size_t i = 0; i < part.from.size() && !w.unfolded; ++i) {
          part.down.push_back(row.taps[w.merged ? i : i / col.taps.size()].shift);
        }
        packed += w.runs(row, col) * part.depth;
        for (int64_t last : {0, 1}) {
          const int64_t height = w.lanes.height(last * (w.lanes.count - 1));
          part.products[size_t(last)] = {
              height, kTogether, part.depth, height, w.cols.stride * w.pixel, height, false};
        }
      }
    }
  }
  Plan(const Plan&) = delete;  // parts point into it

  std::vector<int64_t> places(const WindowAxis::Class& row, const WindowAxis::Class& col) const {
    std::vector<int64_t> list;
    if (w.runs(row, col) == 0) return list;
    for (const auto& down : row.taps) {
      for (const auto& across : col.taps) {
        list.push_back(w.row_at(down.shift) + across.shift * w.pixel);
        if (w.merged) break;
      }
      if (w.unfolded) break;
    }
    return list;
  }
};

struct Kernel {
  std::shared_ptr<const Plan> plan;
  bf16::Round round;
  const uint16_t *src, *weights;
  const float* bias;
  uint16_t* dst;
  bool relu;

  void operator()(int index) const {
    const Window& w = plan->w;
    const int64_t row_block = index % w.row_blocks();
    const int64_t image_block = index / w.row_blocks() % w.image_blocks();
    const int64_t rest = index / w.row_blocks() / w.image_blocks();
    const int64_t group = rest % w.group, part = rest / w.group;
    const int64_t first = image_block * w.images, count = std::min(w.images, w.n - first);
    std::array<uint16_t, Window::kRoom> room;
    if (!w.direct) lay_out(first, count, group, row_block * w.tile, room.data());
    const bf16::TileScope scope;
    for (int64_t b = part * w.panels() / w.parts; b < (part + 1) * w.panels() / w.parts; ++b) {
      for (int64_t i = 0; i < count; ++i) {
        const uint16_t* from =
            w.direct ? src + row_block * w.tile * w.pixel : room.data() + i * w.image_size();
        for (const Part& of : plan->parts) {
          multiply(of, from, group, b, first + i, row_block * w.tile);
        }
      }
    }
  }

  /// Lays out the rows read by the outputs of class rows [row0, row0 + tile), image by image.
  void lay_out(int64_t first, int64_t count, int64_t group, int64_t row0, uint16_t* to) const {
    const Window& w = plan->w;
    for (int64_t i = first; i < first + count; ++i) {
      const uint16_t* image =
          src + i * w.rows.in * w.cols.in * w.channels * w.group + group * w.channels;
      for (int64_t phase : w.phases) {
        for (int64_t place = 0; place < w.places; ++place, to += w.width * w.pixel) {
          const int64_t row = (row0 + place) * w.rows.stride + phase + w.rows.origin;
          if (w.unfolded)
            unfold_row(image, row, to);
          else
            copy_row(image, row, to);
        }
      }
    }
    std::fill_n(to, w.slack(), uint16_t(0));
  }

  const uint16_t* source_row(const uint16_t* image, int64_t row) const {
    const Window& w = plan->w;
    if (row < 0 || row >= w.rows.in) return nullptr;
    return image + row * w.cols.in * w.channels * w.group;
  }

  void copy_row(const uint16_t* image, int64_t row, uint16_t* to) const {
    const Window& w = plan->w;
    const uint16_t* const from = source_row(image, row);
    if (!from) return std::fill_n(to, w.width * w.pixel, uint16_t(0)), void();
    const int64_t begin = w.begin(), end = w.end();
    std::fill_n(to, begin * w.pixel, uint16_t(0));
    copy_pixels(from + w.column(begin), w.column_step(), end - begin, to + begin * w.pixel);
    std::fill_n(to + end * w.pixel, (w.width - end) * w.pixel, uint16_t(0));
  }

  /// A place holds the channels of all rows of the kernel.
  void unfold_row(const uint16_t* image, int64_t row, uint16_t* to) const {
    const Window& w = plan->w;
    const int64_t begin = w.begin(), end = w.end();
    std::fill_n(to, w.width * w.pixel, uint16_t(0));
    for (const WindowAxis::Tap& tap : w.rows.classes[0].taps) {
      const uint16_t* const from = source_row(image, row + tap.shift);
      if (from)
        copy_pixels(from + w.column(begin), w.column_step(), end - begin, to + begin * w.pixel);
      to += w.channels;
    }
  }

  /// Copies the channels of `count` pixels, which are `distance` apart.
  void copy_pixels(const uint16_t* from, int64_t distance, int64_t count, uint16_t* to) const {
    const Window& w = plan->w;
    const auto copy = [&](auto channels) {
      for (int64_t x = 0; x < count; ++x) {
        std::memcpy(to + x * w.pixel, from + x * distance, size_t(channels) * sizeof(uint16_t));
      }
    };
    if (distance == w.channels && w.pixel == w.channels) {
      std::copy_n(from, count * distance, to);
    } else if (w.channels == 1) {
      copy(std::integral_constant<size_t, 1>());
    } else if (w.channels == 3) {
      copy(std::integral_constant<size_t, 3>());
    } else {
      copy(w.channels);
    }
  }

  /// Computes the outputs of a panel in the rows of one image.
  void multiply(const Part& of, const uint16_t* from, int64_t group, int64_t b, int64_t image,
                int64_t row0) const {
    const Window& w = plan->w;
    const int64_t rows = std::min(w.tile, of.row->count - row0), cols = of.col->count;
    if (rows <= 0 || cols <= 0) return;
    const int64_t lanes = w.lanes.lanes(b), height = w.lanes.height(b);
    const int64_t o0 = group * w.lanes.channels + w.lanes.begin(b);
    std::array<float, LaneBlocks::kLanes> start{};
    if (bias) std::copy_n(bias + o0, lanes, start.data());
    const uint16_t* const panel =
        weights + (group * w.lanes.heights() + w.lanes.begin(b)) * w.packed() + of.packed * height;
    const int64_t outputs = (rows - 1) * w.pitch + cols;
    alignas(64) std::array<float, kTogether * LaneBlocks::kLanes> sums;
    Bf16Product product = of.products[b + 1 == w.lanes.count];
    const int64_t together = -w.rows.origin * w.pitch < kFewTogether ? kTogether : kFewTogether;
    for (int64_t p = 0; p < outputs; p += together) {
      const int64_t end = std::min(p + together, outputs);
      product.n = end - p;
      // Outputs in the padding are computed too, so that steps are whole.
      if (!w.direct) product.n = (product.n + 15) / 16 * 16;
      std::array<const uint16_t*, kMostRuns> as, bs;
      size_t runs = 0;
      for (size_t i = 0; i < of.from.size(); ++i) {
        if (together < kTogether &&
            is_outside(of, i, row0 + p / w.pitch, row0 + (end - 1) / w.pitch))
          continue;
        as[runs] = panel + int64_t(i) * of.depth * height;
        bs[runs++] = from + of.from[i] + p * w.cols.stride * w.pixel;
      }
      if (runs > 0)
        product(as.data(), bs.data(), sums.data(), int64_t(runs));
      else
        sums.fill(0);
      store(of, p, end, row0, image, o0,
            {height, lanes, start.data(), relu ? 0.F : -std::numeric_limits<float>::infinity()},
            sums.data());
    }
  }

  /// Whether all that a run reads for some rows of a class is padding above or below the source.
  bool is_outside(const Part& of, size_t run, int64_t first_row, int64_t last_row) const {
    if (of.down.empty()) return false;
    const WindowAxis& rows = plan->w.rows;
    const int64_t shift = of.down[run] + rows.origin;
    return last_row * rows.stride + shift < 0 || first_row * rows.stride + shift >= rows.in;
  }

  /// Writes outputs [begin, end) of a class, skipping those in the padding.
  void store(const Part& of, int64_t begin, int64_t end, int64_t row0, int64_t image, int64_t o0,
             const bf16::Rounding& how, const float* sums) const {
    const Window& w = plan->w;
    if (w.cols.step == 1 && w.rows.step == 1 && w.pitch == w.out_w && of.col->count == w.out_w) {
      // No padding between rows: among others, all outputs of 1 x 1 kernels, which are rows of one.
      uint16_t* const to = dst + ((image * w.out_h + row0) * w.out_w + begin) * w.out_channels + o0;
      return round(how, sums, end - begin, to, w.out_channels);
    }
    for (int64_t p = begin; p < end;) {
      const int64_t row = p / w.pitch, col = p % w.pitch;
      const int64_t count = std::min(end - p, of.col->count - col);
      if (count > 0) {
        const int64_t y = of.row->first + (row0 + row) * w.rows.step;
        const int64_t x = of.col->first + col * w.cols.step;
        uint16_t* const to = dst + ((image * w.out_h + y) * w.out_w + x) * w.out_channels + o0;
        round(how, sums + (p - begin) * how.height, count, to, w.cols.step * w.out_channels);
      }
      p += std::min(end - p, w.pitch - col);
    }
  }
};

/// The weights of a panel as rows of floats, [k][kernel element][lane].
struct Panel {
  const float* from;  // of the group
  int64_t ins, taps, first, lanes;
  bool backward;

  /// Writes the rows of `count` k starting at k0.
  void rows(int64_t k0, int64_t count, float* to) const {
    if (!backward) {
      return transpose_tiles(from + (first * ins + k0) * taps, lanes, count * taps, ins * taps, to,
                             lanes);
    }
    for (int64_t k = k0; k < k0 + count; ++k, to += taps * lanes) {
      const float* const row = from + (k * ins + first) * taps;
      if (taps == 1)
        std::copy_n(row, lanes, to);
      else
        transpose_tiles(row, lanes, taps, taps, to, lanes);
    }
  }
};

/// The destination of a kernel element's weights for k = 0: the row index, over all parts.
struct ElementPlace {
  int64_t element, row;
};

std::vector<ElementPlace> element_places(const Plan& plan, int64_t kernel_w) {
  std::vector<ElementPlace> list;
  const Window& w = plan.w;
  for (const Part& of : plan.parts) {
    int64_t down = 0;
    for (const auto& row : of.row->taps) {
      int64_t across = 0;
      for (const auto& col : of.col->taps) {
        const int64_t columns = int64_t(of.col->taps.size());
        const int64_t run =
            (w.unfolded ? 0 : down) * (w.merged ? 1 : columns) + (w.merged ? 0 : across);
        const int64_t within =
            (w.merged ? across * w.pixel : 0) + (w.unfolded ? down * w.channels : 0);
        list.push_back({row.kernel * kernel_w + col.kernel, of.packed + run * of.depth + within});
        ++across;
      }
      ++down;
    }
  }
  return list;
}

/// Weights of a 1 x 1 kernel for the data gradient: rows in the source's order. Processes several
/// panels at a time, so that long parts of a row are read.
BufferId pack_rows(Program& p, const std::string& name, const ConvGeometry& g, TensorId weights,
                   const Window& w) {
  constexpr int64_t kPanels = 8, kAhead = 8;
  const int64_t ins = g.channels / g.group, outs = g.outputs / g.group, depth = w.packed();
  const int64_t ranges = (w.lanes.count + kPanels - 1) / kPanels;
  const auto pack = [=, lanes = w.lanes](const float* from, uint16_t* to, int block) {
    const int64_t group = block / ranges, first = block % ranges * kPanels;
    const int64_t last = std::min(lanes.count, first + kPanels);
    const float* row = from + group * outs * ins;
    for (int64_t k = 0; k < depth; k += 2, row += 2 * ins) {
      for (int64_t b = first; b < last; ++b) {
        const float *const even = row + lanes.begin(b), *const odd = even + ins;
        uint16_t* const out =
            to + (group * lanes.heights() + lanes.begin(b)) * depth + k * lanes.height(b);
        if (k >= outs) {
          std::fill_n(out, 2 * lanes.height(b), uint16_t(0));
          continue;
        }
        if (k + kAhead + 1 < outs) {
          for (int64_t l = 0; l < lanes.lanes(b); l += 16) {
            __builtin_prefetch(even + kAhead * ins + l);
            __builtin_prefetch(odd + kAhead * ins + l);
          }
        }
        bf16::pair_rows(even, k + 1 < outs ? odd : nullptr, lanes.lanes(b), lanes.height(b), out);
      }
    }
  };
  return pack_step<uint16_t>(p, name, weights, g.group * w.lanes.heights() * depth,
                             g.group * ranges, pack);
}

/// Packs weights (outputs, channels / group, kh, kw): [group][block of lanes][row pair][lane][2].
BufferId pack(Program& p, const std::string& name, const ConvGeometry& g, TensorId weights,
              const std::shared_ptr<const Plan>& plan) {
  const Window& w = plan->w;
  if (w.backward && g.kernel_size() == 1 && w.packed() > 0)
    return pack_rows(p, name, g, weights, w);
  const int64_t ins = g.channels / g.group, outs = g.outputs / g.group, taps = g.kernel_size();
  const auto places = element_places(*plan, g.kernel[1]);
  const int64_t depth = w.packed(), deep = w.channels;
  const int64_t together = taps <= kFewTaps ? 8 : 2;
  const bool pairs = deep % 2 == 0;  // otherwise a pair may span two elements
  const auto pack = [=, lanes_of = w.lanes, backward = w.backward](const float* from, uint16_t* to,
                                                                   int block) {
    const int64_t group = block / lanes_of.count, b = block % lanes_of.count;
    const int64_t lanes = lanes_of.lanes(b), height = lanes_of.height(b);
    const Panel panel{
        from + group * outs * ins * taps, ins, taps, lanes_of.begin(b), lanes, backward};
    std::array<float, std::max(8 * kFewTaps, 2 * kMostTaps) * LaneBlocks::kLanes> rows;
    uint16_t* const out = to + (group * lanes_of.heights() + lanes_of.begin(b)) * depth;
    const bool padded = !pairs || depth != deep * int64_t(places.size());
    if (padded) std::fill_n(out, depth * height, uint16_t(0));
    for (int64_t k = 0; k < deep; k += together) {
      const int64_t some = std::min(together, deep - k);
      panel.rows(k, some, rows.data());
      for (const ElementPlace& at : places) {
        for (int64_t j = 0; j < some; j += pairs ? 2 : 1) {
          const float* const row = rows.data() + (j * taps + at.element) * lanes;
          const int64_t target = at.row + k + j;
          if (pairs) {
            bf16::pair_rows(row, row + taps * lanes, lanes, height, out + target * height);
          } else {
            uint16_t* const half = out + target / 2 * 2 * height + target % 2;
            for (int64_t l = 0; l < lanes; ++l) half[2 * l] = to_bfloat16(row[l]);
          }
        }
      }
    }
  };
  return pack_step<uint16_t>(p, name, weights, g.group * w.lanes.heights() * depth,
                             g.group * w.lanes.count, pack);
}

void emit(Program& p, const std::string& name, const ConvGeometry& g, Window window, TensorId src,
          TensorId weights, TensorId bias, TensorId dst, bool relu) {
  const auto plan = std::make_shared<const Plan>(std::move(window));
  const Version version(Layout::kChannels, Format::kBFloat16);
  const BufferId in = p.read(src, version);
  Step step = biased_step(p, name,
                          "bfloat16 products NSC, lanes are channels (" +
                              channel_widths(plan->w.channels, plan->w.lanes.channels) +
                              (plan->w.direct     ? ")"
                               : plan->w.unfolded ? ", unfolded)"
                                                  : ", laid out)"),
                          g.flops(), {in, pack(p, name, g, weights, plan)}, bias, dst, version);
  step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
    return cafetiere::Kernel{
        int(plan->w.blocks()),
        Kernel{plan, bf16::Round(), at.as<uint16_t>(reads[0]), at.as<uint16_t>(reads[1]),
               bias == kNoTensor ? nullptr : at(reads[2]), at.as<uint16_t>(write), relu}};
  };
  p.step(std::move(step));
}

std::string declines_window(const Window& w) {
  for (const WindowAxis::Class& row : w.rows.classes) {
    for (const WindowAxis::Class& col : w.cols.classes) {
      if (w.runs(row, col) > kMostRuns) return std::to_string(w.runs(row, col)) + " runs";
    }
  }
  if (!w.direct && w.images * w.image_size() + w.slack() > Window::kRoom) return "too wide rows";
  return "";
}

}  // namespace

std::string declines(const ConvGeometry& g) {
  if (const std::string axes = not_planar(g); !axes.empty()) return axes;
  if (g.kernel_size() > kMostTaps) return std::to_string(g.kernel_size()) + " kernel elements";
  if (g.group > 1 && g.group == g.channels) return "a channel a group";
  return declines_window(Window::forward(g));
}

std::string declines_backward_data(const ConvGeometry& g) {
  const std::string reason = declines(g);
  return reason.empty() ? declines_window(Window::backward_data(g)) : reason;
}

void convolution(Program& p, const std::string& name, const ConvGeometry& g, TensorId src,
                 TensorId weights, TensorId bias, TensorId dst, bool relu) {
  emit(p, name, g, Window::forward(g), src, weights, bias, dst, relu);
}

void backward_data(Program& p, const std::string& name, const ConvGeometry& g, TensorId diff_dst,
                   TensorId weights, TensorId diff_src) {
  emit(p, name, g, Window::backward_data(g), diff_dst, weights, kNoTensor, diff_src, false);
}

}  // namespace cafetiere::channels_last_bf16
