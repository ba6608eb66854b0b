// SPDX-License-Identifier: Apache-2.0
// Inner products with packed weights: images stay in rows, and sums have the order of "brgemm".
#include "core/device/cpu/packed_product.h"

#include <algorithm>

#include "core/device/cpu/biased_step.h"
#include "core/device/cpu/brgemm.h"
#include "core/device/isa.h"

namespace cafetiere::packed {
namespace {

constexpr int64_t kWidest = 64;

/// The width of a panel of weights. With AVX2, 128 rows of 64 lanes would fill the L1 cache.
int64_t panel_lanes() { return has_wide_vectors(instruction_set()) ? kWidest : 32; }

/// `width`: of the dimension in lanes.
std::string declines_width(const InnerProductGeometry& g, int64_t width) {
  if (g.transposed) return "transposed weights";
  if (width % kWidest != 0) return "odd width";
  return g.repeats ? "" : "weights used once";
}

}  // namespace

std::string declines(const InnerProductGeometry& g) { return declines_width(g, g.outputs); }

std::string declines_backward_data(const InnerProductGeometry& g) { return declines_width(g, g.k); }

/// The weights are packed as [outputs / lanes][inputs][lanes].
void product(Program& p, const std::string& name, const InnerProductGeometry& g, TensorId src,
             TensorId weights, TensorId bias, TensorId dst, bool relu) {
  const int64_t lanes = panel_lanes();
  const TensorId panels = p.reshaped(weights, {g.outputs / lanes, lanes, g.k});
  Step step = biased_step(p, name, "brgemm NCS, lanes are outputs", g.flops(),
                          {p.read(src, Layout::kRowMajor), p.read(panels, Layout::kChannels)}, bias,
                          dst, Layout::kRowMajor);
  step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
    const Brgemm product(lanes, g.n, g.k, lanes, g.k, g.outputs, true);
    const float *x = at(reads[0]), *w = at(reads[1]);
    const float* b = bias == kNoTensor ? nullptr : at(reads[2]);
    float* y = at(write);
    return Kernel{int(g.outputs / lanes), [=](int block) {
                    const int64_t o = block * lanes;
                    for (int64_t n = 0; n < g.n; ++n) {
                      float* const to = y + n * g.outputs + o;
                      for (int64_t i = 0; i < lanes; ++i) to[i] = b ? b[o + i] : 0.F;
                    }
                    product(w + o * g.k, x, y + o);
                    for (int64_t n = 0; relu && n < g.n; ++n) {
                      float* const to = y + n * g.outputs + o;
                      for (int64_t i = 0; i < lanes; ++i) to[i] = std::max(to[i], 0.F);
                    }
                  }};
  };
  p.step(std::move(step));
}

/// The weights are packed as [inputs / lanes][outputs][lanes].
void backward_data(Program& p, const std::string& name, const InnerProductGeometry& g,
                   TensorId diff_dst, TensorId weights, TensorId diff_src) {
  const int64_t lanes = panel_lanes();
  const TensorId panels = p.reshaped(weights, {g.outputs, g.k / lanes, lanes});
  Step step = biased_step(p, name, "brgemm CNS, lanes are inputs", g.flops(),
                          {p.read(diff_dst, Layout::kRowMajor), p.read(panels, Layout::kPanels)},
                          kNoTensor, diff_src, Layout::kRowMajor);
  step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
    const Brgemm product(lanes, g.n, g.outputs, lanes, g.outputs, g.k, false);
    const float *dy = at(reads[0]), *w = at(reads[1]);
    float* dx = at(write);
    return Kernel{int(g.k / lanes), [=](int block) {
                    const int64_t k = block * lanes;
                    product(w + k * g.outputs, dy, dx + k);
                  }};
  };
  p.step(std::move(step));
}

}  // namespace cafetiere::packed
