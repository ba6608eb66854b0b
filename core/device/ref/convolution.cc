// SPDX-License-Identifier: Apache-2.0
// Convolution for any number of spatial axes, directly from the definition.
#include "core/device/map.h"
#include "core/device/ref/ref_device.h"

namespace cafetiere {
namespace {

/// Increments a multi-index within `size`; false after the last one.
bool next_index(std::vector<int64_t>& index, const std::vector<int64_t>& size) {
  for (size_t i = index.size(); i-- > 0;) {
    if (++index[i] < size[i]) return true;
    index[i] = 0;
  }
  return false;
}

/// Calls f(image, src element, weight element, dst element) for every multiply-add.
template <class F>
void for_each_product(const ConvGeometry& g, const F& f) {
  const int64_t in_pixels = g.in_pixels(), out_pixels = g.out_pixels(), taps = g.kernel_size();
  const int64_t group_in = g.channels / g.group, group_out = g.outputs / g.group;
  for (int64_t n = 0; n < g.n; ++n) {
    for (int64_t o = 0; o < g.outputs; ++o) {
      const int64_t first = o / group_out * group_in;
      std::vector<int64_t> out(g.out.size(), 0);
      int64_t out_pixel = 0;
      do {
        std::vector<int64_t> tap(g.kernel.size(), 0);
        int64_t tap_index = 0;
        do {
          int64_t in_pixel = 0;
          bool inside = true;
          for (size_t i = 0; i < out.size(); ++i) {
            const int64_t at = out[i] * g.stride[i] - g.pad[i] + tap[i] * g.dilation[i];
            inside = inside && at >= 0 && at < g.in[i];
            in_pixel = in_pixel * g.in[i] + at;
          }
          if (inside) {
            for (int64_t c = 0; c < group_in; ++c) {
              f((n * g.channels + first + c) * in_pixels + in_pixel,
                (o * group_in + c) * taps + tap_index,
                (n * g.outputs + o) * out_pixels + out_pixel);
            }
          }
          ++tap_index;
        } while (next_index(tap, g.kernel));
        ++out_pixel;
      } while (next_index(out, g.out));
    }
  }
}

}  // namespace

void RefDevice::convolution(Program& p, const std::string& name, const ConvGeometry& g,
                            TensorId src, TensorId weights, TensorId bias, TensorId dst,
                            bool relu) {
  ref_step(
      p, name, {src, weights, bias}, {dst},
      [=](const auto& in, const auto& out, const RunContext&) {
        std::vector<double> sum(size_t(g.n * g.outputs * g.out_pixels()), 0.0);
        for_each_product(g, [&](int64_t x, int64_t w, int64_t y) {
          sum[size_t(y)] += double(in[0][x]) * in[1][w];
        });
        for (size_t y = 0; y < sum.size(); ++y) {
          const int64_t o = int64_t(y) / g.out_pixels() % g.outputs;
          const double value = sum[y] + (in[2] ? in[2][o] : 0.f);
          out[0][y] = relu && value < 0 ? 0.f : float(value);
        }
      },
      g.flops());
}

void RefDevice::convolution_backward_data(Program& p, const std::string& name,
                                          const ConvGeometry& g, TensorId diff_dst,
                                          TensorId weights, TensorId diff_src) {
  ref_step(
      p, name, {diff_dst, weights}, {diff_src},
      [=](const auto& in, const auto& out, const RunContext&) {
        std::vector<double> sum(size_t(g.n * g.channels * g.in_pixels()), 0.0);
        for_each_product(g, [&](int64_t x, int64_t w, int64_t y) {
          sum[size_t(x)] += double(in[0][y]) * in[1][w];
        });
        for (size_t x = 0; x < sum.size(); ++x) out[0][x] = float(sum[x]);
      },
      g.flops());
}

void RefDevice::convolution_backward_weights(Program& p, const std::string& name,
                                             const ConvGeometry& g, TensorId src, TensorId diff_dst,
                                             Gradient diff_weights) {
  ref_step(
      p, name, {src, diff_dst}, {diff_weights.tensor},
      [=](const auto& in, const auto& out, const RunContext& run) {
        std::vector<double> sum(size_t(g.outputs * g.channels / g.group * g.kernel_size()), 0.0);
        for_each_product(g, [&](int64_t x, int64_t w, int64_t y) {
          sum[size_t(w)] += double(in[0][x]) * in[1][y];
        });
        const bool add = diff_weights.adds(run);
        for (size_t w = 0; w < sum.size(); ++w) put(out[0] + w, float(sum[w]), add);
      },
      g.flops());
}

}  // namespace cafetiere
