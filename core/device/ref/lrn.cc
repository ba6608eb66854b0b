// SPDX-License-Identifier: Apache-2.0
// Local response normalisation across channels, directly from the definition.
#include <algorithm>
#include <cmath>

#include "core/base/elementary.h"
#include "core/device/ref/ref_device.h"

namespace cafetiere {

void RefDevice::lrn(Program& p, const std::string& name, const LrnGeometry& g, TensorId src,
                    TensorId scale, TensorId dst) {
  const Extents e(p.shape(src));
  ref_step(p, name, {src}, {scale, dst}, [=](const auto& in, const auto& out, const RunContext&) {
    for (int64_t n = 0; n < e.n; ++n) {
      for (int64_t c = 0; c < e.c; ++c) {
        const int64_t first = std::max<int64_t>(0, c - g.size / 2);
        const int64_t last = std::min(e.c - 1, c + g.size / 2);
        for (int64_t s = 0; s < e.s; ++s) {
          double sum = 0;
          for (int64_t d = first; d <= last; ++d) {
            const double x = in[0][(n * e.c + d) * e.s + s];
            sum += x * x;
          }
          const int64_t i = (n * e.c + c) * e.s + s;
          out[0][i] = float(g.k + g.alpha / double(g.size) * sum);
          out[1][i] = float(in[0][i] * elementary::pow(double(out[0][i]), -double(g.beta)));
        }
      }
    }
  });
}

void RefDevice::lrn_backward(Program& p, const std::string& name, const LrnGeometry& g,
                             TensorId src, TensorId scale, TensorId dst, TensorId diff_dst,
                             TensorId diff_src) {
  const Extents e(p.shape(src));
  ref_step(p, name, {src, scale, dst, diff_dst}, {diff_src},
           [=](const auto& in, const auto& out, const RunContext&) {
             const double ratio = 2.0 * g.alpha * g.beta / double(g.size);
             for (int64_t n = 0; n < e.n; ++n) {
               for (int64_t c = 0; c < e.c; ++c) {
                 const int64_t first = std::max<int64_t>(0, c - g.size / 2);
                 const int64_t last = std::min(e.c - 1, c + g.size / 2);
                 for (int64_t s = 0; s < e.s; ++s) {
                   double sum = 0;
                   for (int64_t d = first; d <= last; ++d) {
                     const int64_t j = (n * e.c + d) * e.s + s;
                     sum += double(in[3][j]) * in[2][j] / in[1][j];
                   }
                   const int64_t i = (n * e.c + c) * e.s + s;
                   out[0][i] = float(in[3][i] * elementary::pow(double(in[1][i]), -double(g.beta)) -
                                     ratio * in[0][i] * sum);
                 }
               }
             }
           });
}

}  // namespace cafetiere
