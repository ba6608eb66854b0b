// SPDX-License-Identifier: Apache-2.0
#include "core/device/cpu/few_rows.h"

#include <algorithm>
#include <array>

#include "core/device/cpu/biased_step.h"
#include "core/device/cpu/lane_chunks.h"
#include "core/device/cpu/plain_lanes.h"
#include "core/device/transpose.h"

namespace cafetiere::few_rows {
namespace {

constexpr int64_t kAtOnce = 4;  // rows whose sums stay in registers
constexpr int64_t kOctets =
    4;  // of outputs per block: enough sums to hide the latency of a multiply-add
constexpr int64_t kOutputs = kOctets * kOctet;
constexpr int64_t kInputs = 64;  // whose weights are transposed at a time, in the L1 cache
constexpr int64_t kAhead = 2 * kInputs;

struct Operands {
  InnerProductGeometry g;
  const float *x, *w, *bias;
  float* y;
  bool relu;
};

/// Prefetches weights to be transposed later: 32 rows are more streams than the hardware prefetcher
/// handles. Into the L2 cache, since rows that are a power of two apart share few sets of L1.
void prefetch(const float* w, int64_t rows, int64_t cols, int64_t ld) {
  constexpr int kSecondLevel = 2;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; c += kCacheLine) {
      __builtin_prefetch(w + r * ld + c, 0, kSecondLevel);
    }
  }
}

/// Copies `inputs` weights of each output to a panel, input by input.
void take_panel(const float* w, int64_t outputs, int64_t inputs, int64_t left, int64_t k,
                float* panel) {
  const int64_t later = std::clamp(left - kAhead, int64_t(0), kInputs);
  for (int64_t o = 0; o < outputs; o += kOctet) {
    const int64_t rows = std::min(kOctet, outputs - o);
    prefetch(w + o * k + kAhead, rows, later, k);
    transpose_tiles(w + o * k, rows, inputs, k, panel + o, kOutputs);
  }
}

/// Adds the products of kN rows (k apart) and a panel of weights (inputs x kOutputs) to their sums.
template <int64_t kN>
void add_products(const float* x, int64_t k, const float* panel, int64_t inputs,
                  Simd8 (*total)[kOctets]) {
  Simd8 sums[kN][kOctets];
  std::copy_n(&total[0][0], kN * kOctets, &sums[0][0]);
  for (int64_t i = 0; i < inputs; ++i) {
    for (int64_t octet = 0; octet < kOctets; ++octet) {
      const Simd8 weights = load_octet(panel + i * kOutputs + octet * kOctet, kOctet);
      for (int64_t n = 0; n < kN; ++n) {
        sums[n][octet] =
            PlainLanes::multiply_add(weights, PlainLanes::all(x[n * k + i]), sums[n][octet]);
      }
    }
  }
  std::copy_n(&sums[0][0], kN * kOctets, &total[0][0]);
}

using AddProducts = void (*)(const float*, int64_t, const float*, int64_t, Simd8 (*)[kOctets]);
constexpr std::array<AddProducts, kAtOnce> kAddProducts = {add_products<1>, add_products<2>,
                                                           add_products<3>, add_products<4>};

/// Outputs in lanes; inputs are added one by one, starting from the bias: the order of "brgemm", so
/// that the outputs of a row do not depend on the number of rows.
void run_block(const Operands& at, int block) {
  const int64_t o = block * kOutputs, outputs = std::min(kOutputs, at.g.outputs - o), k = at.g.k;
  Simd8 sums[kRows][kOctets];
  alignas(64) float panel[kInputs * kOutputs];
  if (outputs < kOutputs) std::fill(std::begin(panel), std::end(panel), 0.F);
  for (int64_t octet = 0; octet < kOctets; ++octet) {
    const int64_t count = std::clamp(outputs - octet * kOctet, int64_t(0), kOctet);
    sums[0][octet] = at.bias ? load_octet(at.bias + o + octet * kOctet, count) : Simd8{};
  }
  for (int64_t n = 1; n < at.g.n; ++n) std::copy_n(sums[0], kOctets, sums[n]);
  for (int64_t k0 = 0; k0 < k; k0 += kInputs) {
    const int64_t inputs = std::min(kInputs, k - k0);
    take_panel(at.w + o * k + k0, outputs, inputs, k - k0, k, panel);
    for (int64_t n = 0; n < at.g.n; n += kAtOnce) {
      const int64_t rows = std::min(kAtOnce, at.g.n - n);
      kAddProducts[size_t(rows - 1)](at.x + n * k + k0, k, panel, inputs, sums + n);
    }
  }
  for (int64_t n = 0; n < at.g.n; ++n) {
    for (int64_t i = 0; i < outputs; ++i) {
      const float sum = sums[n][i / kOctet][i % kOctet];
      at.y[n * at.g.outputs + o + i] = at.relu ? std::max(sum, 0.F) : sum;
    }
  }
}

}  // namespace

std::string declines(const InnerProductGeometry& g) {
  if (g.transposed) return "transposed weights";
  return g.n > kRows ? std::to_string(g.n) + " rows" : "";
}

void product(Program& p, const std::string& name, const InnerProductGeometry& g, TensorId src,
             TensorId weights, TensorId bias, TensorId dst, bool relu) {
  Step step = biased_step(p, name, "rows of weights transposed, lanes are outputs", g.flops(),
                          {p.read(src, Layout::kRowMajor), p.read(weights, Layout::kRowMajor)},
                          bias, dst, Layout::kRowMajor);
  step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
    const Operands operands{
        g, at(reads[0]), at(reads[1]), bias == kNoTensor ? nullptr : at(reads[2]), at(write), relu};
    return Kernel{int((g.outputs + kOutputs - 1) / kOutputs),
                  [=](int block) { run_block(operands, block); }};
  };
  p.step(std::move(step));
}

}  // namespace cafetiere::few_rows
