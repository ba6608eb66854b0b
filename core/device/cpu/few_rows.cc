// SPDX-License-Identifier: Apache-2.0
#include "core/device/cpu/few_rows.h"

#include <algorithm>
#include <array>

#include "core/device/cpu/lane_chunks.h"

namespace cafetiere::few_rows {
namespace {

constexpr int64_t kRows = 4;      // at most; their sums and the weights stay in registers
constexpr int64_t kOutputs = 16;  // a block

/// The sum of 16 running sums, those of a distance of 8, 4, 2 and 1 being added in turn.
float total(const Simd8& low, const Simd8& high) {
  const Simd8 sum = low + high;
  return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

/// The products of rows x (k floats each) with kAtOnce rows of weights: independent streams, which the
/// memory serves faster than one. The sums of an output do not depend on kAtOnce.
template <int64_t kN, int64_t kAtOnce>
void products(const float* x, const float* w, int64_t k, float (&sums)[kAtOnce][kN]) {
  Simd8 low[kAtOnce][kN] = {}, high[kAtOnce][kN] = {};
  const auto add = [&](int64_t i, auto count_low, auto count_high) {
    for (int64_t o = 0; o < kAtOnce; ++o) {
      const Simd8 w0 = load_octet(w + o * k + i, count_low);
      const Simd8 w1 = load_octet(w + o * k + i + kOctet, count_high);
      for (int64_t n = 0; n < kN; ++n) {
        low[o][n] += w0 * load_octet(x + n * k + i, count_low);
        high[o][n] += w1 * load_octet(x + n * k + i + kOctet, count_high);
      }
    }
  };
  constexpr std::integral_constant<int64_t, kOctet> kWhole;
  int64_t i = 0;
  for (; i + 2 * kOctet <= k; i += 2 * kOctet) add(i, kWhole, kWhole);
  if (i < k) add(i, std::min(k - i, kOctet), std::max<int64_t>(0, k - i - kOctet));
  for (int64_t o = 0; o < kAtOnce; ++o) {
    for (int64_t n = 0; n < kN; ++n) sums[o][n] = total(low[o][n], high[o][n]);
  }
}

struct Operands {
  InnerProductGeometry g;
  const float *x, *w, *bias;
  float* y;
  bool relu;
};

template <int64_t kN, int64_t kAtOnce>
void write(const Operands& at, int64_t o) {
  float sums[kAtOnce][kN];
  products<kN, kAtOnce>(at.x, at.w + o * at.g.k, at.g.k, sums);
  for (int64_t i = 0; i < kAtOnce; ++i) {
    for (int64_t n = 0; n < kN; ++n) {
      const float sum = sums[i][n] + (at.bias ? at.bias[o + i] : 0.F);
      at.y[n * at.g.outputs + o + i] = at.relu ? std::max(sum, 0.F) : sum;
    }
  }
}

template <int64_t kN>
void run_block(const Operands& at, int block) {
  constexpr int64_t kAtOnce = kN == 1 ? 4 : kN == 2 ? 2 : 1;
  int64_t o = block * kOutputs;
  const int64_t end = std::min(at.g.outputs, o + kOutputs);
  for (; o + kAtOnce <= end; o += kAtOnce) write<kN, kAtOnce>(at, o);
  for (; o < end; ++o) write<kN, 1>(at, o);
}

using RunBlock = void (*)(const Operands&, int);
constexpr std::array<RunBlock, kRows> kRunBlock = {run_block<1>, run_block<2>, run_block<3>,
                                                   run_block<4>};

}  // namespace

std::string declines(const InnerProductGeometry& g) {
  if (g.transposed) return "transposed weights";
  return g.n > kRows ? std::to_string(g.n) + " rows" : "";
}

void product(Program& p, const std::string& name, const InnerProductGeometry& g, TensorId src,
             TensorId weights, TensorId bias, TensorId dst, bool relu) {
  Step step;
  step.name = name;
  step.kernel = "dot products, lanes are inputs";
  step.flops = g.flops();
  step.reads = {p.read(src, Layout::kRowMajor), p.read(weights, Layout::kRowMajor)};
  if (bias != kNoTensor) step.reads.push_back(p.read(bias, Layout::kRowMajor));
  step.writes = {p.write(dst, Layout::kRowMajor)};
  step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
    const Operands operands{
        g, at(reads[0]), at(reads[1]), bias == kNoTensor ? nullptr : at(reads[2]), at(write), relu};
    const RunBlock run = kRunBlock[size_t(g.n - 1)];
    return Kernel{int((g.outputs + kOutputs - 1) / kOutputs),
                  [=](int block) { run(operands, block); }};
  };
  p.step(std::move(step));
}

}  // namespace cafetiere::few_rows
