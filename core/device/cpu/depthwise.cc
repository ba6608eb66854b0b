// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution (one input channel per group and output): vector loops along the channels
// of N S C tensors, since it contains no matrix product.
#include <algorithm>
#include <array>

#include "core/device/cpu/biased_step.h"
#include "core/device/cpu/convolution.h"
#include "core/device/cpu/lane_chunks.h"
#include "core/device/map.h"
#include "core/device/transpose.h"

namespace cafetiere::depthwise {
namespace {

constexpr int64_t kParts = 8;  // parts of a weight gradient

/// dst = sum over taps of weights * src, plus bias, followed by ReLU if `relu`; one output row per
/// block.
struct RowKernel {
  Correlation c;
  bool flipped;
  const float *src, *weights, *bias;  // weights: [kernel element][channel]
  float* dst;
  bool relu;

  void operator()(int block) const {
    const int64_t image = block / c.out_h, oh = block % c.out_h;
    for (int64_t ow = 0; ow < c.out_w; ++ow) {
      float* out = dst + (int64_t(block) * c.out_w + ow) * c.out_channels;
      for_each_chunk(c.out_channels, [&](int64_t first, auto channels) {
        pixel(image, oh, ow, first, channels, out + first);
      });
    }
  }

  template <class Count>
  void pixel(int64_t image, int64_t oh, int64_t ow, int64_t first, Count channels,
             float* out) const {
    std::array<float, kLaneChunk> sum{};
    if (bias) std::copy_n(bias + first, int64_t(channels), sum.data());
    for (const auto& [kh, ih] : c.rows[size_t(oh)]) {
      for (const auto& [kw, iw] : c.cols[size_t(ow)]) {
        const int64_t tap = kh * c.kernel_w + kw;
        const float* w = weights + (flipped ? c.kernel_size() - 1 - tap : tap) * c.in_channels;
        const float* x = src + ((image * c.in_h + ih) * c.in_w + iw) * c.in_channels;
        for (int64_t l = 0; l < channels; ++l) sum[size_t(l)] += w[first + l] * x[first + l];
      }
    }
    for (int64_t l = 0; l < channels; ++l) {
      out[l] = relu ? std::max(sum[size_t(l)], 0.f) : sum[size_t(l)];
    }
  }
};

/// One part of the images' weight gradient, [kernel element][channel], summed a row at a time.
struct PartKernel {
  Correlation c;
  std::vector<Span> spans;
  int64_t parts;
  const float *src, *diff;
  float* partial;

  void operator()(int part) const {
    float* sums = partial + part * c.kernel_size() * c.in_channels;
    std::fill_n(sums, c.kernel_size() * c.in_channels, 0.f);
    for (int64_t n = part * c.n / parts; n < (part + 1) * c.n / parts; ++n) {
      for (int64_t oh = 0; oh < c.out_h; ++oh) {
        for (const auto& [kh, ih] : c.rows[size_t(oh)]) {
          for (const Span& span : spans) {
            const float* x = src + ((n * c.in_h + ih) * c.in_w + span.src) * c.in_channels;
            const float* dy = diff + ((n * c.out_h + oh) * c.out_w + span.out) * c.in_channels;
            float* sum = sums + (kh * c.kernel_w + span.kernel) * c.in_channels;
            for_each_chunk(c.in_channels, [&](int64_t first, auto channels) {
              add_row(span, x + first, dy + first, channels, sum + first);
            });
          }
        }
      }
    }
  }

  template <class Count>
  void add_row(const Span& span, const float* x, const float* dy, Count channels,
               float* sum) const {
    std::array<float, kLaneChunk> row{};
    for (int64_t i = 0; i < span.count; ++i) {
      const float* a = x + i * span.src_step * c.in_channels;
      const float* b = dy + i * c.in_channels;
      for (int64_t l = 0; l < channels; ++l) row[size_t(l)] += a[l] * b[l];
    }
    for (int64_t l = 0; l < channels; ++l) sum[l] += row[size_t(l)];
  }
};

/// Weights (channels, 1, kh, kw) as [kernel element][channel].
BufferId pack_weights(Program& p, const std::string& name, const ConvGeometry& g,
                      TensorId weights) {
  return pack_step(p, name, weights, weight_count(g), 1, [=](const float* w, float* to, int) {
    const int64_t taps = g.kernel_size();
    transpose_tiles(w, g.channels, taps, taps, to, g.channels);
  });
}

void emit(Program& p, const std::string& name, const ConvGeometry& g, const Correlation& c,
          bool flipped, TensorId src, TensorId weights, TensorId bias, TensorId dst, bool relu) {
  const BufferId packed = pack_weights(p, name, g, weights);
  Step step = biased_step(p, name, "vector NSC, depthwise", g.flops(),
                          {p.read(src, Layout::kChannels), packed}, bias, dst, Layout::kChannels);
  step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
    return Kernel{int(c.n * c.out_h),
                  RowKernel{c, flipped, at(reads[0]), at(reads[1]),
                            bias == kNoTensor ? nullptr : at(reads[2]), at(write), relu}};
  };
  p.step(std::move(step));
}

/// Adds the parts in order and writes them in Caffe's order (channels, 1, kh, kw).
void emit_unpack(Program& p, const std::string& name, const ConvGeometry& g, int64_t parts,
                 BufferId partial, Gradient gradient) {
  Step step = unpack_step(p, name, parts, partial, gradient);
  step.make = [=, write = step.writes[0]](const Binder& at) {
    const float* sums = at(partial);
    float* out = at(write);
    const RunContext* run = at.run();
    return Kernel{int(g.kernel_size()), [=](int tap) {
                    const int64_t taps = g.kernel_size(), size = taps * g.channels;
                    for (int64_t c = 0; c < g.channels; ++c) {
                      float sum = 0;
                      for (int64_t part = 0; part < parts; ++part) {
                        sum += sums[part * size + tap * g.channels + c];
                      }
                      put(out + c * taps + tap, sum, gradient.adds(*run));
                    }
                  }};
  };
  p.step(std::move(step));
}

}  // namespace

std::string declines(const ConvGeometry& g) {
  if (const std::string axes = not_planar(g); !axes.empty()) return axes;
  if (g.group == 1) return "1 group";
  if (g.group == g.channels && g.group == g.outputs) return {};
  return channel_widths(g.channels / g.group, g.outputs / g.group) + " a group";
}

void convolution(Program& p, const std::string& name, const ConvGeometry& g, TensorId src,
                 TensorId weights, TensorId bias, TensorId dst, bool relu) {
  emit(p, name, g, forward_correlation(g), false, src, weights, bias, dst, relu);
}

void backward_data(Program& p, const std::string& name, const ConvGeometry& g, TensorId diff_dst,
                   TensorId weights, TensorId diff_src) {
  emit(p, name, g, backward_correlation(g), true, diff_dst, weights, kNoTensor, diff_src, false);
}

void backward_weights(Program& p, const std::string& name, const ConvGeometry& g, TensorId src,
                      TensorId diff_dst, Gradient diff_weights) {
  const int64_t parts = std::min(kParts, g.n);
  const BufferId partial = p.scratch(parts * g.channels * g.kernel_size());
  const Correlation c = forward_correlation(g);
  Step step;
  step.name = name;
  step.kernel = "vector NSC, depthwise, " + std::to_string(parts) + " parts";
  step.flops = g.flops();
  step.reads = {p.read(src, Layout::kChannels), p.read(diff_dst, Layout::kChannels)};
  step.writes = {partial};
  step.make = [=, reads = step.reads](const Binder& at) {
    return Kernel{int(parts), PartKernel{c, spans(c.cols, 0, c.out_w, c.kernel_w), parts,
                                         at(reads[0]), at(reads[1]), at(partial)}};
  };
  p.step(std::move(step));
  emit_unpack(p, name, g, parts, partial, diff_weights);
}

}  // namespace cafetiere::depthwise
