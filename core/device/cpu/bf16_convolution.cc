// SPDX-License-Identifier: Apache-2.0
// Convolution in bfloat16, forward and data gradient: products of a panel of weights with a line of
// pixels laid out by Window.
#include <algorithm>
#include <array>
#include <limits>
#include <memory>

#include "core/device/cpu/bf16_convolution_plan.h"
#include "core/device/cpu/bf16_lines.h"
#include "core/device/cpu/bf16_round.h"
#include "core/device/cpu/bf16_tiles.h"
#include "core/device/cpu/biased_step.h"
#include "core/device/cpu/lane_chunks.h"
#include "core/device/cpu/whole_pieces.h"

namespace cafetiere::channels_last_bf16 {
namespace {

using bf16::Window;
using bf16::WindowAxis;
using channels_last::LaneBlocks;

constexpr int64_t kFewTogether = 32;  // kTogether where kernel rows outside the source are skipped
constexpr int64_t kMostRuns = 64;     // runs per product
constexpr int64_t kBlocks = 16;       // fewer are too few for steps by rows

struct Kernel {
  std::shared_ptr<const WindowPlan> plan;
  bf16::Round round;
  const uint16_t *src, *weights;
  const float* bias;
  uint16_t* dst;
  int64_t pixel;  ///< distance between output pixels
  bool relu;
  const uint16_t* addend = nullptr;  ///< see Ending

  void operator()(int index) const {
    const Window& w = plan->w;
    const int64_t row_block = index % w.row_blocks();
    const int64_t image_block = index / w.row_blocks() % w.image_blocks();
    const int64_t rest = index / w.row_blocks() / w.image_blocks();
    const int64_t group = rest % w.group, part = rest / w.group;
    const Panels panels{part * w.panels() / w.parts, (part + 1) * w.panels() / w.parts};
    const int64_t row0 = row_block * w.tile;
    if (w.direct) return by_rows(row0, std::min(row0 + w.tile, w.rows.in), panels);
    const int64_t first = image_block * w.images, count = std::min(w.images, w.n - first);
    alignas(64) std::array<uint16_t, Window::kRoom> room;
    bf16::Lines{w, src}.lay_out(first, count, group, row0, room.data());
    const bf16::TileScope scope;
    for (int64_t b = panels.begin; b < panels.end; ++b) {
      for (int64_t i = 0; i < count; ++i) {
        for (const Part& of : plan->parts) {
          multiply(of, room.data() + i * w.image_size(), group, b, first + i, row0);
        }
      }
    }
  }

  struct Panels {
    int64_t begin, end;
  };

  /// Computes pixels [begin, end) of a source that is read in place: all panels of some pixels, so
  /// that the outputs are written in their order.
  void by_rows(int64_t begin, int64_t end, Panels panels) const {
    const Window& w = plan->w;
    const Part& of = plan->parts[0];
    const bf16::TileScope scope;
    alignas(64) std::array<float, kTogether * LaneBlocks::kLanes> sums;
    for (int64_t p = begin; p < end; p += kTogether) {
      for (int64_t b = panels.begin; b < panels.end; ++b) {
        const Outputs out(*this, of, 0, b);
        Bf16Product product = out.product;
        product.n = std::min(kTogether, end - p);
        const uint16_t* const from = src + p * w.pixel;
        product(&out.panel, &from, sums.data(), 1);
        const int64_t first = p * pixel + out.first;
        // A line of each pixel at a time is more than the hardware prefetches.
        for (int64_t i = 0; addend && i < product.n; ++i) {
          prefetch_to_write(addend + first + (kTogether + i) * pixel);
        }
        put(out, sums.data(), product.n, first, pixel);
      }
    }
  }

  /// The outputs of a panel: the first one, the weights, and the bias.
  struct Outputs {
    int64_t first, lanes, height;
    const uint16_t* panel;
    Bf16Product product;
    std::array<float, LaneBlocks::kLanes> start{};
    float floor;

    Outputs(const Kernel& k, const Part& of, int64_t group, int64_t b)
        : floor(k.relu ? 0.F : -std::numeric_limits<float>::infinity()) {
      const Window& w = k.plan->w;
      lanes = w.lanes.lanes(b), height = w.lanes.height(b);
      first = group * w.lanes.channels + w.lanes.begin(b);
      panel = k.weights + (group * w.lanes.heights() + w.lanes.begin(b)) * w.packed() +
              of.packed * height;
      product = of.products[b + 1 == w.lanes.count];
      if (k.bias) std::copy_n(k.bias + first, lanes, start.data());
    }
    bf16::Rounding rounding() const { return {height, lanes, start.data(), floor}; }
  };

  /// Rounds the sums of `count` pixels, which are `distance` apart, to outputs starting at `first`.
  void put(const Outputs& out, const float* sums, int64_t count, int64_t first,
           int64_t distance) const {
    bf16::Rounding how = out.rounding();
    if (addend) how.added = addend + first;
    round(how, sums, count, dst + first, distance);
  }

  /// Computes the outputs of a panel in the rows of one image.
  void multiply(const Part& of, const uint16_t* from, int64_t group, int64_t b, int64_t image,
                int64_t row0) const {
    const Window& w = plan->w;
    const int64_t rows = std::min(w.tile, of.row->count - row0), cols = of.col->count;
    if (rows <= 0 || cols <= 0) return;
    const Outputs out(*this, of, group, b);
    const int64_t outputs = (rows - 1) * w.pitch + cols;
    alignas(64) std::array<float, kTogether * LaneBlocks::kLanes> sums;
    Bf16Product product = out.product;
    const int64_t together = -w.rows.origin * w.pitch < kFewTogether ? kTogether : kFewTogether;
    for (int64_t p = 0; p < outputs; p += together) {
      const int64_t end = std::min(p + together, outputs);
      // Outputs in the padding are computed too, so that steps are whole.
      product.n = rounded_up(end - p, bf16::kTileRows);
      std::array<const uint16_t*, kMostRuns> as, bs;
      size_t runs = 0;
      for (size_t i = 0; i < of.from.size(); ++i) {
        if (together < kTogether &&
            is_outside(of, i, row0 + p / w.pitch, row0 + (end - 1) / w.pitch))
          continue;
        as[runs] = out.panel + int64_t(i) * of.depth * out.height;
        bs[runs++] = from + of.from[i] + p * w.cols.stride * w.pixel;
      }
      if (runs > 0)
        product(as.data(), bs.data(), sums.data(), int64_t(runs));
      else
        sums.fill(0);
      store(of, p, end, row0, image, out, sums.data());
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
  void store(const Part& of, int64_t begin, int64_t end, int64_t row0, int64_t image,
             const Outputs& out, const float* sums) const {
    const Window& w = plan->w;
    if (w.cols.step == 1 && w.rows.step == 1 && w.pitch == w.out_w && of.col->count == w.out_w) {
      // Rows without padding between them, such as those of a 1 x 1 kernel, which are pixels.
      const int64_t first = (image * w.out_h + row0) * w.out_w + begin;
      return put(out, sums, end - begin, first * pixel + out.first, pixel);
    }
    for (int64_t p = begin; p < end;) {
      const int64_t row = p / w.pitch, col = p % w.pitch;
      const int64_t count = std::min(end - p, of.col->count - col);
      if (count > 0) {
        const int64_t y = of.row->first + (row0 + row) * w.rows.step;
        const int64_t x = of.col->first + col * w.cols.step;
        const int64_t first = (image * w.out_h + y) * w.out_w + x;
        put(out, sums + (p - begin) * out.height, count, first * pixel + out.first,
            w.cols.step * pixel);
      }
      p += std::min(end - p, w.pitch - col);
    }
  }
};

void emit(Program& p, const std::string& name, const ConvGeometry& g, Window window, TensorId src,
          TensorId weights, TensorId bias, TensorId dst, bool relu) {
  const auto plan = std::make_shared<const WindowPlan>(std::move(window));
  const Version version(Layout::kChannels, Format::kBFloat16);
  const BufferId in = p.read(src, version);
  Step step =
      biased_step(p, name,
                  "bfloat16 products NSC, lanes are channels (" +
                      channel_widths(plan->w.channels, plan->w.lanes.channels) +
                      (plan->w.direct     ? ")"
                       : plan->w.unfolded ? ", unfolded)"
                                          : ", laid out)"),
                  g.flops(), {in, pack_weights(p, name, g, weights, plan)}, bias, dst, version);
  offer_places(
      step, plan->w.out_channels, relu, [=, reads = step.reads](const Binder& at, const Place& to) {
        const Kernel kernel{plan,
                            bf16::Round(),
                            at.as<uint16_t>(reads[0]),
                            at.as<uint16_t>(reads[1]),
                            bias == kNoTensor ? nullptr : at(reads[2]),
                            at.as<uint16_t>(to.whole) + to.first,
                            to.channels,
                            to.relu,
                            to.addend == kNoBuffer ? nullptr : at.as<uint16_t>(to.addend)};
        return cafetiere::Kernel{int(plan->w.blocks()), kernel, [=](int64_t begin, int64_t end) {
                                   kernel.by_rows(begin, end, {0, plan->w.panels()});
                                 }};
      });
  // All weights must fit into the L2 cache to be read for every block of rows.
  if (plan->w.direct && plan->w.parts == 1 && plan->w.rows.in >= kBlocks * kTogether) {
    step.rows = {
        .count = plan->w.rows.in, .width = plan->w.out_channels, .least = kTogether, .reads = 1};
    step.costly = true;
  }
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
