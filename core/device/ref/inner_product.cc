// SPDX-License-Identifier: Apache-2.0
// Inner products, directly from the definition.
#include "core/device/map.h"
#include "core/device/ref/ref_device.h"

namespace cafetiere {
namespace {

int64_t weight_index(const InnerProductGeometry& g, int64_t o, int64_t k) {
  return g.transposed ? k * g.outputs + o : o * g.k + k;
}

}  // namespace

void RefDevice::inner_product(Program& p, const std::string& name, const InnerProductGeometry& g,
                              TensorId src, TensorId weights, TensorId bias, TensorId dst,
                              bool relu) {
  ref_step(
      p, name, {src, weights, bias}, {dst},
      [=](const auto& in, const auto& out, const RunContext&) {
        for (int64_t n = 0; n < g.n; ++n) {
          for (int64_t o = 0; o < g.outputs; ++o) {
            double sum = in[2] ? in[2][o] : 0.f;
            for (int64_t k = 0; k < g.k; ++k) {
              sum += double(in[0][n * g.k + k]) * in[1][weight_index(g, o, k)];
            }
            out[0][n * g.outputs + o] = relu && sum < 0 ? 0.f : float(sum);
          }
        }
      },
      g.flops());
}

void RefDevice::inner_product_backward_data(Program& p, const std::string& name,
                                            const InnerProductGeometry& g, TensorId diff_dst,
                                            TensorId weights, TensorId diff_src) {
  ref_step(
      p, name, {diff_dst, weights}, {diff_src},
      [=](const auto& in, const auto& out, const RunContext&) {
        for (int64_t n = 0; n < g.n; ++n) {
          for (int64_t k = 0; k < g.k; ++k) {
            double sum = 0;
            for (int64_t o = 0; o < g.outputs; ++o) {
              sum += double(in[0][n * g.outputs + o]) * in[1][weight_index(g, o, k)];
            }
            out[0][n * g.k + k] = float(sum);
          }
        }
      },
      g.flops());
}

void RefDevice::inner_product_backward_weights(Program& p, const std::string& name,
                                               const InnerProductGeometry& g, TensorId src,
                                               TensorId diff_dst, Gradient diff_weights) {
  ref_step(
      p, name, {src, diff_dst}, {diff_weights.tensor},
      [=](const auto& in, const auto& out, const RunContext& run) {
        const bool add = diff_weights.adds(run);
        for (int64_t o = 0; o < g.outputs; ++o) {
          for (int64_t k = 0; k < g.k; ++k) {
            double sum = 0;
            for (int64_t n = 0; n < g.n; ++n) {
              sum += double(in[0][n * g.k + k]) * in[1][n * g.outputs + o];
            }
            put(out[0] + weight_index(g, o, k), float(sum), add);
          }
        }
      },
      g.flops());
}

}  // namespace cafetiere
