// SPDX-License-Identifier: Apache-2.0
// Pooling, directly from the definition, including Caffe's border rules (PoolGeometry).
#include <algorithm>
#include <cfloat>

#include "core/device/ref/ref_device.h"

namespace cafetiere {
namespace {

/// Calls f(plane, output pixel, row window, column window) for every output.
template <class F>
void for_each_window(const PoolGeometry& g, const F& f) {
  for (int64_t plane = 0; plane < g.n * g.channels; ++plane) {
    for (int64_t oh = 0; oh < g.out_h; ++oh) {
      for (int64_t ow = 0; ow < g.out_w; ++ow) f(plane, oh * g.out_w + ow, g.rows(oh), g.cols(ow));
    }
  }
}

}  // namespace

void RefDevice::pooling(Program& p, const std::string& name, const PoolGeometry& g, TensorId src,
                        TensorId dst, TensorId index) {
  ref_step(p, name, {src}, {dst, index}, [=](const auto& in, const auto& out, const RunContext&) {
    for_each_window(g, [&](int64_t plane, int64_t o, auto rows, auto cols) {
      const float* x = in[0] + plane * g.in_h * g.in_w;
      const int64_t y = plane * g.out_h * g.out_w + o;
      float best = -FLT_MAX, chosen = -1;
      double sum = 0;
      for (int64_t h = rows.begin; h < rows.end; ++h) {
        for (int64_t w = cols.begin; w < cols.end; ++w) {
          const float value = x[h * g.in_w + w];
          sum += value;
          if (value > best) best = value, chosen = float(h * g.in_w + w);
        }
      }
      out[0][y] = g.max ? best : float(sum / double(rows.padded * cols.padded));
      if (out[1]) out[1][y] = chosen;
    });
  });
}

void RefDevice::pooling_backward(Program& p, const std::string& name, const PoolGeometry& g,
                                 TensorId diff_dst, TensorId index, TensorId diff_src) {
  ref_step(p, name, {diff_dst, index}, {diff_src},
           [=](const auto& in, const auto& out, const RunContext&) {
             std::fill_n(out[0], g.n * g.channels * g.in_h * g.in_w, 0.f);
             for_each_window(g, [&](int64_t plane, int64_t o, auto rows, auto cols) {
               float* dx = out[0] + plane * g.in_h * g.in_w;
               const int64_t y = plane * g.out_h * g.out_w + o;
               if (g.max) {
                 if (in[1][y] >= 0) dx[int64_t(in[1][y])] += in[0][y];
                 return;
               }
               const float share = in[0][y] / float(rows.padded * cols.padded);
               for (int64_t h = rows.begin; h < rows.end; ++h) {
                 for (int64_t w = cols.begin; w < cols.end; ++w) dx[h * g.in_w + w] += share;
               }
             });
           });
}

}  // namespace cafetiere
