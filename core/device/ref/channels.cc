// SPDX-License-Identifier: Apache-2.0
// Reductions to one value per channel, and softmax over channels.
#include <algorithm>
#include <cmath>

#include "core/device/map.h"
#include "core/device/ref/ref_device.h"
#include "core/device/vector_math.h"

namespace cafetiere {
namespace {

/// Calls f(element index) for all elements of one channel of a row-major tensor.
template <class F>
void for_each_in_channel(const Extents& e, int64_t c, const F& f) {
  for (int64_t n = 0; n < e.n; ++n) {
    for (int64_t s = 0; s < e.s; ++s) f((n * e.c + c) * e.s + s);
  }
}

}  // namespace

void RefDevice::channel_moments(Program& p, const std::string& name, TensorId src, TensorId mean,
                                TensorId variance) {
  const Extents e(p.shape(src));
  ref_step(
      p, name, {src}, {mean, variance}, [=](const auto& in, const auto& out, const RunContext&) {
        const double count = double(e.n * e.s);
        for (int64_t c = 0; c < e.c; ++c) {
          double sum = 0, squares = 0;
          for_each_in_channel(e, c, [&](int64_t i) { sum += in[0][i]; });
          const double m = sum / count;
          for_each_in_channel(e, c, [&](int64_t i) { squares += (in[0][i] - m) * (in[0][i] - m); });
          out[0][c] = float(m);
          out[1][c] = float(squares / count);
        }
      });
}

void RefDevice::channel_sums(Program& p, const std::string& name, const ChannelTerms& terms,
                             Gradient sum_a, Gradient products) {
  const Extents e(p.shape(terms.a));
  ref_step(p, name, {terms.a, terms.b, terms.centre}, {sum_a.tensor, products.tensor},
           [=](const auto& in, const auto& out, const RunContext& run) {
             for (int64_t c = 0; c < e.c; ++c) {
               double sum = 0, dot = 0;
               const double centre = in[2] ? in[2][c] : 0;
               for_each_in_channel(e, c, [&](int64_t i) {
                 sum += in[0][i];
                 if (in[1]) dot += in[0][i] * (in[1][i] - centre);
               });
               if (out[0]) put(out[0] + c, float(sum), sum_a.adds(run));
               if (out[1]) put(out[1] + c, float(dot), products.adds(run));
             }
           });
}

void RefDevice::softmax(Program& p, const std::string& name, TensorId src, TensorId dst) {
  const Extents e(p.shape(src));
  ref_step(p, name, {src}, {dst}, [=](const auto& in, const auto& out, const RunContext&) {
    for (int64_t n = 0; n < e.n; ++n) {
      for (int64_t s = 0; s < e.s; ++s) {
        const float* x = in[0] + n * e.c * e.s + s;
        float* y = out[0] + n * e.c * e.s + s;
        float largest = x[0];
        for (int64_t c = 1; c < e.c; ++c) largest = std::max(largest, x[c * e.s]);
        float sum = 0;
        for (int64_t c = 0; c < e.c; ++c) sum += y[c * e.s] = vec::exp(x[c * e.s] - largest);
        for (int64_t c = 0; c < e.c; ++c) y[c * e.s] /= sum;
      }
    }
  });
}

void RefDevice::softmax_backward(Program& p, const std::string& name, TensorId dst,
                                 TensorId diff_dst, TensorId diff_src) {
  const Extents e(p.shape(dst));
  ref_step(p, name, {dst, diff_dst}, {diff_src},
           [=](const auto& in, const auto& out, const RunContext&) {
             for (int64_t n = 0; n < e.n; ++n) {
               for (int64_t s = 0; s < e.s; ++s) {
                 const int64_t base = n * e.c * e.s + s;
                 double dot = 0;
                 for (int64_t c = 0; c < e.c; ++c) {
                   dot += double(in[0][base + c * e.s]) * in[1][base + c * e.s];
                 }
                 for (int64_t c = 0; c < e.c; ++c) {
                   const int64_t i = base + c * e.s;
                   out[0][i] = in[0][i] * float(in[1][i] - dot);
                 }
               }
             }
           });
}

}  // namespace cafetiere
