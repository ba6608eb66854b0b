// SPDX-License-Identifier: Apache-2.0
// Convolution with the batch innermost: a batch-reduce product per output pixel whose lanes are the
// images of the batch, so that channel counts such as 20 or 50 waste no lanes.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>

#include "core/device/cpu/biased_step.h"
#include "core/device/cpu/brgemm.h"
#include "core/device/cpu/convolution.h"

namespace cafetiere {
namespace {

constexpr int64_t kMaxTaps = 256;
constexpr int64_t kLanes = 64;               // images per product; more would spill the
                                             // accumulators
constexpr int64_t kWeightBlock = 48 * 1024;  // floats of weights that fit into the L2 cache

/// A correlation, and the packed form of its weights.
struct Packed : Correlation {
  bool merged;  // taps of a kernel row are adjacent pixels: one product per kernel row

  Packed(Correlation c, bool adjacent)
      : Correlation(std::move(c)), merged(group == 1 && adjacent) {}
  int64_t depth() const { return group_in() * (merged ? kernel_w : 1); }
  int64_t taps() const { return merged ? kernel_h : kernel_size(); }
  /// Offset of weight (o, tap row, tap column, c) in packed form: [tap][o][depth].
  int64_t packed(int64_t o, int64_t kh, int64_t kw, int64_t c) const {
    const int64_t per_tap = out_channels * depth();
    if (merged) return kh * per_tap + o * depth() + kw * in_channels + c;
    return (kh * kernel_w + kw) * per_tap + o * depth() + c;
  }
};

/// Packs weights (outputs, channels / group, kh, kw) in the order of a correlation. For the data
/// gradient, input and output channels are swapped and the kernel is flipped.
BufferId pack_weights(Program& p, const std::string& name, const ConvGeometry& g, const Packed& c,
                      TensorId weights, bool backward) {
  const auto pack = [=](const float* w, float* out, int block) {
    const int64_t o = block, group_in = g.channels / g.group;
    const int64_t first = o / (g.outputs / g.group) * group_in;
    const float* src = w + o * group_in * g.kernel_size();
    for (int64_t ch = 0; ch < group_in; ++ch) {
      for (int64_t kh = 0; kh < c.kernel_h; ++kh) {
        for (int64_t kw = 0; kw < c.kernel_w; ++kw) {
          const int64_t to = backward ? c.packed(first + ch, c.kernel_h - 1 - kh,
                                                 c.kernel_w - 1 - kw, o % (g.outputs / g.group))
                                      : c.packed(o, kh, kw, ch);
          out[to] = *src++;
        }
      }
    }
  };
  return pack_step(p, name, weights, weight_count(g), g.outputs, pack);
}

/// Keyed by product shape: (lanes, outputs) x depth.
using ProductsByShape = std::map<std::array<int64_t, 3>, Brgemm>;

/// Runs a correlation for one output row, one chunk of lanes and one chunk of output channels.
struct CorrelationKernel {
  Packed c;
  const float *src, *weights, *bias;
  float* dst;
  bool relu;
  int64_t lane_chunks, out_chunk, out_chunks;
  std::shared_ptr<const ProductsByShape> products;

  void operator()(int block) const {
    const int64_t oh = block / (lane_chunks * out_chunks);
    const int64_t lane0 = block / out_chunks % lane_chunks * kLanes;
    const int64_t lanes = std::min(kLanes, c.n - lane0);
    const int64_t within = block % out_chunks * out_chunk;
    const int64_t outs = std::min(out_chunk, c.group_out() - within);
    for (int64_t g = 0; g < c.group; ++g) {
      const int64_t o0 = g * c.group_out() + within;
      for (int64_t ow = 0; ow < c.out_w; ++ow) {
        pixel(c.rows[size_t(oh)], c.cols[size_t(ow)], g, o0, outs, lane0, lanes,
              dst + ((oh * c.out_w + ow) * c.out_channels + o0) * c.n + lane0);
      }
    }
  }

  void pixel(const std::vector<std::pair<int, int>>& row_taps,
             const std::vector<std::pair<int, int>>& col_taps, int64_t g, int64_t o0, int64_t outs,
             int64_t lane0, int64_t lanes, float* out) const {
    std::array<const float*, kMaxTaps> a, b;
    int64_t count = 0;
    const int64_t group_in = c.in_channels / c.group;
    const auto add_tap = [&](const std::pair<int, int>& row, const std::pair<int, int>& col) {
      const int64_t pixel = int64_t(row.second) * c.in_w + col.second;
      a[size_t(count)] = src + (pixel * c.in_channels + g * group_in) * c.n + lane0;
      b[size_t(count++)] = weights + c.packed(o0, row.first, col.first, 0);
    };
    for (const auto& row : row_taps) {
      if (c.merged && !col_taps.empty()) add_tap(row, col_taps.front());
      if (!c.merged) {
        for (const auto& col : col_taps) add_tap(row, col);
      }
    }
    for (int64_t o = 0; o < outs; ++o) std::fill_n(out + o * c.n, lanes, bias ? bias[o0 + o] : 0.f);
    if (count > 0) {
      const int64_t depth = c.merged ? int64_t(col_taps.size()) * group_in : group_in;
      products->at({lanes, outs, depth})(a.data(), b.data(), out, count);
    }
    if (!relu) return;
    for (int64_t o = 0; o < outs; ++o) {
      for (int64_t l = 0; l < lanes; ++l) out[o * c.n + l] = std::max(out[o * c.n + l], 0.f);
    }
  }
};

void emit_correlation(Program& p, const std::string& name, const Packed& c, TensorId src,
                      BufferId packed, TensorId bias, TensorId dst, bool relu, double flops) {
  Step step = biased_step(p, name, "brgemm SCN, lanes are images (" + c.widths() + ")", flops,
                          {p.read(src, Layout::kPixels), packed}, bias, dst, Layout::kPixels);
  step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
    const int64_t lane_chunks = (c.n + kLanes - 1) / kLanes;
    const int64_t fit = std::max<int64_t>(16, kWeightBlock / (c.depth() * c.taps()) / 16 * 16);
    const int64_t chunk = std::min(c.group_out(), fit);
    const int64_t chunks = (c.group_out() + chunk - 1) / chunk;
    auto products = std::make_shared<ProductsByShape>();
    for (int64_t lanes : {std::min(kLanes, c.n), c.n - (lane_chunks - 1) * kLanes}) {
      for (int64_t outs : {chunk, c.group_out() - (chunks - 1) * chunk}) {
        for (const auto& col : c.cols) {
          const int64_t depth = c.in_channels / c.group * (c.merged ? int64_t(col.size()) : 1);
          if (depth > 0) {
            products->try_emplace({lanes, outs, depth}, lanes, outs, depth, c.n, c.depth(), c.n,
                                  true);
          }
        }
      }
    }
    CorrelationKernel kernel{
        c,         at(reads[0]), at(reads[1]), bias == kNoTensor ? nullptr : at(reads[2]),
        at(write), relu,         lane_chunks,  chunk,
        chunks,    products};
    return Kernel{int(c.out_h * lane_chunks * chunks), std::move(kernel)};
  };
  p.step(std::move(step));
}

}  // namespace

namespace batch_innermost {

std::string declines(const ConvGeometry& g) {
  if (const std::string axes = not_planar(g); !axes.empty()) return axes;
  if (g.kernel_size() <= kMaxTaps) return {};
  return std::to_string(g.kernel_size()) + " kernel elements";
}

void convolution(Program& p, const std::string& name, const ConvGeometry& g, TensorId src,
                 TensorId weights, TensorId bias, TensorId dst, bool relu) {
  const Packed c(forward_correlation(g), g.dilation[1] == 1);
  const BufferId packed = pack_weights(p, name, g, c, weights, false);
  emit_correlation(p, name, c, src, packed, bias, dst, relu, g.flops());
}

void backward_data(Program& p, const std::string& name, const ConvGeometry& g, TensorId diff_dst,
                   TensorId weights, TensorId diff_src) {
  const Packed c(backward_correlation(g), g.dilation[1] == 1 && g.stride[1] == 1);
  const BufferId packed = pack_weights(p, name, g, c, weights, true);
  emit_correlation(p, name, c, diff_dst, packed, kNoTensor, diff_src, false, g.flops());
}

}  // namespace batch_innermost
}  // namespace cafetiere
