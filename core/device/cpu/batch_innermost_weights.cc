// SPDX-License-Identifier: Apache-2.0
// The weight gradient of a convolution: products over (pixel, image), with output channels
// innermost.
#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "core/device/cpu/batch_innermost.h"
#include "core/device/cpu/brgemm.h"
#include "core/device/cpu/convolution.h"
#include "core/device/map.h"
#include "core/device/transpose.h"

namespace cafetiere {
namespace {

/// The division of the sum: `taps` kernel positions (kernel rows if their columns are adjacent
/// pixels) times `parts` ranges of output rows, each summed separately and added in order.
struct WeightGradient {
  ConvGeometry g;
  bool merged;
  AxisTaps rows, cols;
  int64_t parts;

  explicit WeightGradient(const ConvGeometry& geometry)
      : g(geometry),
        merged(g.group == 1 && g.dilation[1] == 1),
        rows(forward_taps(g.out[0], g.in[0], g.kernel[0], g.stride[0], g.pad[0], g.dilation[0])),
        cols(forward_taps(g.out[1], g.in[1], g.kernel[1], g.stride[1], g.pad[1], g.dilation[1])) {
    parts = std::clamp<int64_t>((16 + taps() - 1) / taps(), 1, std::min<int64_t>(8, g.out[0]));
  }
  int64_t taps() const { return merged ? g.kernel[0] : g.kernel_size(); }
  int64_t group_in() const { return g.channels / g.group; }
  int64_t group_out() const { return g.outputs / g.group; }
  int64_t depth() const { return merged ? g.kernel[1] * group_in() : group_in(); }
  int64_t lanes() const { return batch_innermost::padded_outputs(group_out()); }
  int64_t size() const { return g.group * taps() * depth() * lanes(); }
  /// The start of the (depth x lanes) block of a group and tap.
  int64_t block(int64_t group, int64_t tap) const {
    return (group * taps() + tap) * depth() * lanes();
  }
};

using ProductsByColumns = std::map<int64_t, Brgemm>;  // keyed by number of columns

/// Sums one tap over one range of output rows.
struct TapKernel {
  std::shared_ptr<const WeightGradient> w;
  std::shared_ptr<const ProductsByColumns> products;
  const float *src, *diff;  // diff: [pixel][image][group][lane]
  float* partial;

  void operator()(int block) const {
    const int64_t tap = block % w->taps(), part = block / w->taps();
    const int64_t begin = part * w->g.out[0] / w->parts;
    const int64_t end = (part + 1) * w->g.out[0] / w->parts;
    for (int64_t group = 0; group < w->g.group; ++group) {
      float* sum = partial + part * w->size() + w->block(group, tap);
      std::fill_n(sum, w->depth() * w->lanes(), 0.f);
      for (int64_t oh = begin; oh < end; ++oh) add_row(oh, tap, group, sum);
    }
  }

  /// Adds an output row; adjacent pixels that see the same part of the kernel share a product.
  void add_row(int64_t oh, int64_t tap, int64_t group, float* sum) const {
    const int kh = int(w->merged ? tap : tap / w->g.kernel[1]);
    const int kw = int(w->merged ? -1 : tap % w->g.kernel[1]);
    const auto& row = w->rows[size_t(oh)];
    const auto hit = std::find_if(row.begin(), row.end(), [&](auto& t) { return t.first == kh; });
    if (hit == row.end()) return;
    std::array<const float*, 64> a, b;
    int64_t count = 0, columns = 0, first = 0;
    const auto flush = [&] {
      if (count > 0) {
        products->at(columns)(a.data(), b.data(), sum + first * w->group_in() * w->lanes(), count);
      }
      count = 0;
    };
    for (int64_t ow = 0; ow < w->g.out[1]; ++ow) {
      const auto [k0, x0, n] = columns_of(ow, kw);
      if (n == 0) continue;
      if (count == 64 || n * w->group_in() != columns || k0 != first) flush();
      columns = n * w->group_in();
      first = k0;
      const int64_t pixel = int64_t(hit->second) * w->g.in[1] + x0;
      a[size_t(count)] =
          diff + ((oh * w->g.out[1] + ow) * w->g.n * w->g.group + group) * w->lanes();
      b[size_t(count++)] = src + (pixel * w->g.channels + group * w->group_in()) * w->g.n;
    }
    flush();
  }

  /// (first kernel column in the block, its source pixel, number of columns) for an output.
  std::array<int64_t, 3> columns_of(int64_t ow, int kw) const {
    const auto& col = w->cols[size_t(ow)];
    if (col.empty()) return {0, 0, 0};
    if (kw < 0) return {col.front().first, col.front().second, int64_t(col.size())};
    for (const auto& [k, x] : col) {
      if (k == kw) return {0, x, 1};
    }
    return {0, 0, 0};
  }
};

/// Adds a tap's parts to the first one, in order.
void add_parts(const WeightGradient& w, int64_t group, int64_t tap, float* parts) {
  float* sum = parts + w.block(group, tap);
  for (int64_t part = 1; part < w.parts; ++part) {
    const float* more = sum + part * w.size();
    for (int64_t i = 0; i < w.depth() * w.lanes(); ++i) sum[i] += more[i];
  }
}

/// Writes a tap's sums to the gradient (outputs, channels, kh, kw).
void unpack_tap(const WeightGradient& w, int64_t group, int64_t tap, const float* parts, bool add,
                float* out) {
  const int64_t size = w.g.kernel_size(), row = w.group_in() * size;
  for (int64_t k = 0; k < w.depth(); ++k) {
    const int64_t c = k % w.group_in();
    const int64_t spot = w.merged ? tap * w.g.kernel[1] + k / w.group_in() : tap;
    const float* from = parts + w.block(group, tap) + k * w.lanes();
    float* to = out + group * w.group_out() * row + c * size + spot;
    for (int64_t o = 0; o < w.group_out(); ++o) put(to + o * row, from[o], add);
  }
}

/// Adds the parts in order and writes them in Caffe's order (outputs, channels, kh, kw).
void emit_unpack(Program& p, const std::string& name, std::shared_ptr<const WeightGradient> w,
                 BufferId partial, Gradient gradient) {
  Step step = unpack_step(p, name, w->parts, partial, gradient);
  step.make = [=, write = step.writes[0]](const Binder& at) {
    float* parts = at(partial);
    float* out = at(write);
    const RunContext* run = at.run();
    return Kernel{int(w->g.group * w->taps()), [=](int block) {
                    const int64_t group = block / w->taps(), tap = block % w->taps();
                    add_parts(*w, group, tap, parts);
                    unpack_tap(*w, group, tap, parts, gradient.adds(*run), out);
                  }};
  };
  p.step(std::move(step));
}

}  // namespace

namespace batch_innermost {

BufferId transpose_pixels(Program& p, const std::string& name, const ConvGeometry& g,
                          TensorId diff) {
  const int64_t lanes = padded_outputs(g.outputs / g.group);
  const BufferId out = p.scratch(g.n * g.group * lanes * g.out_pixels());
  Step step;
  step.name = name + " transpose";
  step.kernel = "SCN to SNC";
  step.reads = {p.read(diff, Layout::kPixels)};
  step.writes = {out};
  step.make = [=, read = step.reads[0]](const Binder& at) {
    const float* src = at(read);
    float* dst = at(out);
    return Kernel{int(g.out[0]), [=](int row) {
                    const int64_t n = g.n, outs = g.outputs / g.group;
                    const int64_t stride = g.group * lanes, width = g.out[1];
                    for (int64_t i = row * width; i < (row + 1) * width; ++i) {
                      for (int64_t k = 0; k < g.group; ++k) {
                        float* to = dst + i * n * stride + k * lanes;
                        transpose_tiles(src + (i * g.outputs + k * outs) * n, outs, n, n, to,
                                        stride);
                        for (int64_t j = 0; j < n && outs < lanes; ++j) {
                          std::fill(to + j * stride + outs, to + j * stride + lanes, 0.f);
                        }
                      }
                    }
                  }};
  };
  p.step(std::move(step));
  return out;
}

void backward_weights(Program& p, const std::string& name, const ConvGeometry& g, TensorId src,
                      TensorId diff_dst, Gradient diff_weights) {
  const auto w = std::make_shared<const WeightGradient>(g);
  const BufferId diff = transpose_pixels(p, name, g, diff_dst);
  const BufferId partial = p.scratch(w->parts * w->size());
  Step step;
  step.name = name;
  step.kernel = "brgemm, lanes are outputs, " + std::to_string(w->taps()) + " x " +
                std::to_string(w->parts) + " parts";
  step.flops = g.flops();
  step.reads = {p.read(src, Layout::kPixels), diff};
  step.writes = {partial};
  step.make = [=, read = step.reads[0]](const Binder& at) {
    auto products = std::make_shared<ProductsByColumns>();
    const auto add_shape = [&](int64_t columns) {
      products->try_emplace(columns, w->lanes(), columns, g.n, g.group * w->lanes(), g.n,
                            w->lanes(), true);
    };
    if (!w->merged) add_shape(w->group_in());
    for (const auto& col : w->cols) {
      if (w->merged && !col.empty()) add_shape(int64_t(col.size()) * w->group_in());
    }
    return Kernel{int(w->taps() * w->parts),
                  TapKernel{w, products, at(read), at(diff), at(partial)}};
  };
  p.step(std::move(step));
  emit_unpack(p, name, w, partial, diff_weights);
}

}  // namespace batch_innermost
}  // namespace cafetiere
