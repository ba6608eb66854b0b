// SPDX-License-Identifier: Apache-2.0
#include "core/device/cpu/image_dots.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/device/cpu/convolution.h"
#include "core/device/cpu/image_dots_rows.h"
#include "core/device/cpu/plain_lanes.h"
#include "core/device/isa.h"
#include "core/device/map.h"

namespace cafetiere::image_dots {
namespace {

constexpr int64_t kMostChannels = 4;
constexpr int64_t kMostSums = 64 << 10;  // of a part: they fit into the L2 cache
constexpr int64_t kMostParts = 8;        // of the output rows, summed separately and added in order

/// Adjacent output pixels that see the same kernel columns.
struct Run {
  int64_t out, pixels, column, columns, src;
};

std::vector<Run> runs_of(const AxisTaps& cols) {
  std::vector<Run> runs;
  for (size_t ow = 0; ow < cols.size(); ++ow) {
    const auto& taps = cols[ow];
    if (taps.empty()) continue;
    const auto columns = int64_t(taps.size());
    if (!runs.empty()) {
      Run& last = runs.back();
      if (last.out + last.pixels == int64_t(ow) && last.column == taps.front().first &&
          last.columns == columns) {
        ++last.pixels;
        continue;
      }
    }
    runs.push_back({int64_t(ow), 1, taps.front().first, columns, taps.front().second});
  }
  return runs;
}

struct Dots {
  ConvGeometry g;
  AxisTaps rows;
  std::vector<Run> runs;
  int64_t parts;

  explicit Dots(const ConvGeometry& geometry)
      : g(geometry),
        rows(forward_taps(g.out[0], g.in[0], g.kernel[0], g.stride[0], g.pad[0], g.dilation[0])),
        runs(runs_of(
            forward_taps(g.out[1], g.in[1], g.kernel[1], g.stride[1], g.pad[1], g.dilation[1]))),
        parts(std::min(kMostParts, g.out[0])) {}

  int64_t taps() const { return g.channels * g.kernel_size(); }
  int64_t tap_size() const { return g.outputs * kLanes; }
  int64_t size() const { return taps() * tap_size(); }  ///< [channel][kh][kw][output][lane]
};

/// Sums a part of the output rows.
struct PartKernel {
  std::shared_ptr<const Dots> d;
  AddRun add_run;
  const float *src, *diff;
  float* partial;

  void operator()(int part) const {
    float* const sums = partial + part * d->size();
    std::fill_n(sums, d->size(), 0.F);
    const int64_t end = (part + 1) * d->g.out[0] / d->parts;
    for (int64_t oh = part * d->g.out[0] / d->parts; oh < end; ++oh) {
      for (int64_t o = 0; o < d->g.outputs; o += kMostOutputs) {
        for (const auto& [kh, ih] : d->rows[size_t(oh)]) add_row(oh, o, kh, ih, sums);
      }
    }
  }

  void add_row(int64_t oh, int64_t output, int64_t kh, int64_t ih, float* sums) const {
    const ConvGeometry& g = d->g;
    const int64_t src_pixel = g.channels * g.n, diff_pixel = g.outputs * g.n;
    for (int64_t c = 0; c < g.channels; ++c) {
      for (const Run& run : d->runs) {
        const int64_t tap = (c * g.kernel[0] + kh) * g.kernel[1] + run.column;
        add_run({.diff = diff + (oh * g.out[1] + run.out) * diff_pixel + output * g.n,
                 .src = src + (ih * g.in[1] + run.src) * src_pixel + c * g.n,
                 .pixels = run.pixels,
                 .columns = run.columns,
                 .outputs = std::min(kMostOutputs, g.outputs - output),
                 .images = g.n,
                 .diff_step = diff_pixel,
                 .src_step = g.stride[1] * src_pixel,
                 .column_step = g.dilation[1] * src_pixel,
                 .sums = sums + tap * d->tap_size() + output * kLanes,
                 .sums_step = d->tap_size()});
      }
    }
  }
};

/// The sum of a weight's lanes over the parts, halving the lanes each time.
float sum_of(const Dots& d, const float* part) {
  std::array<float, kLanes> sum;
  std::copy_n(part, kLanes, sum.data());
  for (int64_t i = 1; i < d.parts; ++i) {
    const float* const more = part + i * d.size();
    for (int64_t l = 0; l < kLanes; ++l) sum[size_t(l)] += more[l];
  }
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t l = 0; l < half; ++l) sum[size_t(l)] += sum[size_t(l + half)];
  }
  return sum[0];
}

}  // namespace

AddRun plain_add_run() { return add_run_of<PlainLanes>; }

AddRun add_run() { return has_wide_vectors(instruction_set()) ? wide_add_run() : plain_add_run(); }

std::string declines(const ConvGeometry& g) {
  if (const std::string axes = not_planar(g); !axes.empty()) return axes;
  if (g.group > 1) return std::to_string(g.group) + " groups";
  if (g.channels > kMostChannels) return channel_widths(g.channels, g.outputs);
  const int64_t sums = weight_count(g) * kLanes;
  if (sums > kMostSums) return std::to_string(sums) + " sums";
  return g.n < kLanes ? std::to_string(g.n) + " images" : "";
}

void backward_weights(Program& p, const std::string& name, const ConvGeometry& g, TensorId src,
                      TensorId diff_dst, Gradient diff_weights) {
  const auto d = std::make_shared<const Dots>(g);
  const BufferId partial = p.scratch(d->parts * d->size());
  Step step;
  step.name = name;
  step.kernel = "dot products over images SCN (" + channel_widths(g.channels, g.outputs) + "), " +
                std::to_string(d->parts) + " parts";
  step.flops = g.flops();
  step.reads = {p.read(src, Layout::kPixels), p.read(diff_dst, Layout::kPixels)};
  step.writes = {partial};
  step.make = [=, reads = step.reads](const Binder& at) {
    return Kernel{int(d->parts), PartKernel{d, add_run(), at(reads[0]), at(reads[1]), at(partial)}};
  };
  p.step(std::move(step));

  Step write = unpack_step(p, name, d->parts, partial, diff_weights);
  write.make = [=, to = write.writes[0]](const Binder& at) {
    const float* const sums = at(partial);
    float* const out = at(to);
    const RunContext* run = at.run();
    return Kernel{int(d->taps()), [=](int tap) {
                    const bool add = diff_weights.adds(*run);
                    for (int64_t o = 0; o < d->g.outputs; ++o) {
                      put(out + o * d->taps() + tap,
                          sum_of(*d, sums + tap * d->tap_size() + o * kLanes), add);
                    }
                  }};
  };
  p.step(std::move(write));
}

}  // namespace cafetiere::image_dots
