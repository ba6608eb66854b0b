// SPDX-License-Identifier: Apache-2.0
#include "core/device/cpu/few_rows_bf16.h"

#include <algorithm>
#include <array>
#include <limits>

#include "core/device/bfloat16.h"
#include "core/device/cpu/bf16_pack.h"
#include "core/device/cpu/bf16_product.h"
#include "core/device/cpu/bf16_round.h"
#include "core/device/cpu/biased_step.h"
#include "core/device/cpu/convolution.h"
#include "core/device/cpu/cpu_device.h"
#include "core/device/cpu/whole_pieces.h"
#include "core/device/open_page.h"
#include "core/device/transpose.h"

namespace cafetiere::few_rows_bf16 {
namespace {

constexpr int64_t kOutputs = 32;           // per block of the forward pass
constexpr int64_t kInputs = 512;           // of a block's weights at a time, in the L1 cache
constexpr int64_t kTile = 32, kTiles = 8;  // inputs per tile of fixed weights, tiles per product
constexpr int64_t kStripe = 256;           // inputs per block of the data gradient
constexpr int64_t kShortStripe = 64;       // the same for weights used repeatedly
constexpr int64_t kWeightRows = 64;        // of a stripe at a time
constexpr int64_t kAhead = 24;             // prefetch distance in rows when rounding
constexpr int64_t kLine = 16;              // floats

/// The images in pairs of inputs: [input / 2][image][2], with images in lanes.
struct PairInputs {
  InnerProductGeometry g;
  int64_t lanes;
  const uint16_t* x;
  uint16_t* pairs;

  void operator()(int block) const {
    const int64_t first = block * kInputs, inputs = std::min(kInputs, g.k - first);
    uint16_t* const to = pairs + first * lanes;
    std::fill_n(to, inputs * lanes, uint16_t(0));
    bf16::transpose_pairs(x + first, g.n, inputs / 2, g.k, to, lanes);
  }
};

/// Computes the outputs of a block; `Weights` knows how to multiply by its form of the weights.
template <class Weights>
struct Forward {
  InnerProductGeometry g;
  int64_t lanes;
  const uint16_t* pairs;
  Weights weights;
  const float* bias;
  uint16_t* y;
  bool relu;
  bf16::Round round;

  void operator()(int block) const {
    const int64_t first = block * kOutputs, outputs = std::min(kOutputs, g.outputs - first);
    alignas(64) std::array<float, kOutputs * kMostImages> sums, turned;
    {
      const bf16::TileScope scope;
      weights.multiply(g, pairs, lanes, first, outputs, sums.data());
    }
    transpose_tiles(sums.data(), outputs, g.n, lanes, turned.data(), kOutputs);
    std::array<float, kOutputs> start{};
    if (bias) std::copy_n(bias + first, outputs, start.data());
    round({kOutputs, outputs, start.data(), relu ? 0.F : -std::numeric_limits<float>::infinity()},
          turned.data(), g.n, y + first, g.outputs);
  }
};

// The forms of the weights: all give the same bits. They write the sums of outputs [first, first +
// outputs) as [output][image].

/// In float32, rounded a piece at a time.
struct FloatWeights {
  const float* weights;

  void multiply(const InnerProductGeometry& g, const uint16_t* pairs, int64_t lanes, int64_t first,
                int64_t outputs, float* sums) const {
    alignas(64) std::array<uint16_t, kOutputs * kInputs> rows{};
    for (int64_t k = 0; k < g.k; k += kInputs) {
      const int64_t inputs = std::min(kInputs, g.k - k);
      for (int64_t o = 0; o < outputs; ++o) {
        const float* const row = weights + (first + o) * g.k + k;
        for (int64_t i = 0; i < kInputs; i += kLine) __builtin_prefetch(row + kInputs + i, 0, 2);
        narrow(row, inputs, rows.data() + o * kInputs);
      }
      Bf16Product product(lanes, outputs, inputs, lanes, kInputs, lanes, k > 0);
      product.whole_rows = true;
      const uint16_t *const a = pairs + k * lanes, *const b = rows.data();
      product(&a, &b, sums, 1);
    }
  }
};

/// In bfloat16, row-major.
struct RowWeights {
  const uint16_t* weights;

  void multiply(const InnerProductGeometry& g, const uint16_t* pairs, int64_t lanes, int64_t first,
                int64_t outputs, float* sums) const {
    Bf16Product product(lanes, outputs, g.k, lanes, g.k, lanes, false);
    product.whole_rows = outputs == kOutputs;
    const uint16_t* const b = weights + first * g.k;
    product(&pairs, &b, sums, 1);
  }
};

/// Weights in tiles, in the order in which TileWeights reads them: [output / 32][input / 32][output]
/// [input], with zeros beyond the inputs and outputs.
struct PackTiles {
  InnerProductGeometry g;

  int64_t depth() const { return rounded_up(g.k, kTile); }
  int64_t size() const { return rounded_up(g.outputs, kOutputs) * depth(); }

  void operator()(const float* weights, uint16_t* packed, int block) const {
    const int64_t first = block * kOutputs, outputs = std::min(kOutputs, g.outputs - first);
    uint16_t* const to = packed + first * depth();
    std::fill_n(to, kOutputs * depth(), uint16_t(0));
    for (int64_t o = 0; o < outputs; ++o) {
      for (int64_t k = 0; k < g.k; k += kTile) {
        narrow(weights + (first + o) * g.k + k, std::min(kTile, g.k - k),
               to + k * kOutputs + o * kTile);
      }
    }
  }
};

/// As packed by PackTiles.
struct TileWeights {
  static constexpr int64_t kProductsAhead = 4;
  static constexpr int64_t kPage = kPageBytes / int64_t(sizeof(uint16_t));

  const uint16_t* tiles;

  void multiply(const InnerProductGeometry& g, const uint16_t* pairs, int64_t lanes, int64_t first,
                int64_t outputs, float* sums) const {
    const uint16_t* const panel = tiles + first * PackTiles{g}.depth();
    for (int64_t k = 0; k < g.k; k += kTiles * kTile) {
      const int64_t inputs = std::min(kTiles * kTile, g.k - k), whole = inputs / kTile;
      const uint16_t* const ahead = panel + (k + kProductsAhead * kTiles * kTile) * kOutputs;
      for (int64_t i = 0; i < kTiles * kTile * kOutputs; i += kPage) open_page(ahead + i);
      std::array<const uint16_t*, kTiles> as, bs;
      for (int64_t i = 0; i < whole; ++i) {
        as[size_t(i)] = pairs + (k + i * kTile) * lanes;
        bs[size_t(i)] = panel + (k + i * kTile) * kOutputs;
      }
      Bf16Product product(lanes, outputs, kTile, lanes, kTile, lanes, k > 0);
      product.whole_rows = true;
      if (whole > 0) product(as.data(), bs.data(), sums, whole);
      if (whole * kTile == inputs) continue;
      product.k = inputs - whole * kTile, product.add = k + whole > 0;
      as[0] = pairs + (k + whole * kTile) * lanes, bs[0] = panel + (k + whole * kTile) * kOutputs;
      product(as.data(), bs.data(), sums, 1);
    }
  }
};

/// Computes the data gradient of a stripe of inputs from weights in pairs of outputs.
struct RepeatedBackwardData {
  InnerProductGeometry g;
  const uint16_t *dy, *pairs;
  uint16_t* dx;

  void operator()(int block) const {
    const int64_t first = block * kShortStripe, inputs = std::min(kShortStripe, g.k - first);
    const bf16::TileScope scope;
    alignas(64) std::array<float, kMostImages * kShortStripe> sums;
    const Bf16Product product(inputs, g.n, g.outputs, g.k, g.outputs, kShortStripe, false);
    const uint16_t* const a = pairs + 2 * first;
    product(&a, &dy, sums.data(), 1);
    for (int64_t n = 0; n < g.n; ++n) {
      narrow(sums.data() + n * kShortStripe, inputs, dx + n * g.k + first);
    }
  }
};

/// Computes the data gradient of a stripe of inputs.
struct BackwardData {
  InnerProductGeometry g;
  const uint16_t* dy;
  const float* weights;
  uint16_t* dx;

  void operator()(int block) const {
    const int64_t first = block * kStripe, inputs = std::min(kStripe, g.k - first);
    const int64_t lanes = rounded_up(inputs, Bf16Product::kVector);
    const bf16::TileScope scope;
    alignas(64) std::array<uint16_t, kWeightRows * kStripe> pairs;
    alignas(64) std::array<float, kMostImages * kStripe> sums;
    for (int64_t o = 0; o < g.outputs; o += kWeightRows) {
      const int64_t rows = std::min(kWeightRows, g.outputs - o);
      pair_weights(weights + o * g.k + first, rows, inputs, lanes, pairs.data());
      const Bf16Product product(lanes, g.n, rows, lanes, g.outputs, kStripe, o > 0);
      const uint16_t *const a = pairs.data(), *const b = dy + o;
      product(&a, &b, sums.data(), 1);
    }
    for (int64_t n = 0; n < g.n; ++n) {
      narrow(sums.data() + n * kStripe, inputs, dx + n * g.k + first);
    }
  }

  /// [row / 2][input][2]
  void pair_weights(const float* from, int64_t rows, int64_t inputs, int64_t lanes,
                    uint16_t* to) const {
    std::array<uint16_t, kStripe> even, odd;
    for (int64_t r = 0; r < rows; r += 2, to += 2 * lanes) {
      for (int64_t ahead = r + kAhead; ahead < r + kAhead + 2; ++ahead) {
        for (int64_t i = 0; i < inputs; i += kLine)
          __builtin_prefetch(from + ahead * g.k + i, 0, 2);
      }
      const bool two = r + 1 < rows;
      narrow(from + r * g.k, inputs, even.data());
      if (two) narrow(from + (r + 1) * g.k, inputs, odd.data());
      bf16::pair_rows(even.data(), two ? odd.data() : nullptr, inputs, lanes, to);
    }
  }
};

}  // namespace

std::string widths(const InnerProductGeometry& g) {
  return "bfloat16 products of few images (" + std::to_string(g.k) + " to " +
         std::to_string(g.outputs) + " channels)";
}

bool suits(const InnerProductGeometry& g) {
  return !g.transposed && g.n <= kMostImages && g.k % Bf16Product::kVector == 0;
}

void product(Program& p, const std::string& name, const InnerProductGeometry& g, TensorId src,
             TensorId weights, TensorId bias, TensorId dst, bool relu) {
  const int64_t lanes = rounded_up(g.n, Bf16Product::kVector);
  Step pair;
  pair.name = name + " pairs";
  pair.kernel = "inputs of few images";
  pair.reads = {p.read(src, kRows)};
  const BufferId pairs = p.scratch(g.k * lanes / 2);
  pair.writes = {pairs};
  pair.make = [=, read = pair.reads[0]](const Binder& at) {
    return Kernel{blocks(g.k, kInputs),
                  PairInputs{g, lanes, at.as<uint16_t>(read), at.as<uint16_t>(pairs)}};
  };
  p.step(std::move(pair));

  const auto emit = [&]<class Weights>(BufferId weights_in,
                                       Weights (*of)(const Binder&, BufferId)) {
    Step step = biased_step(p, name, widths(g), g.flops(), {pairs, weights_in}, bias, dst, kRows);
    step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
      return Kernel{blocks(g.outputs, kOutputs),
                    Forward<Weights>{g, lanes, at.as<uint16_t>(reads[0]), of(at, reads[1]),
                                     bias == kNoTensor ? nullptr : at(reads[2]),
                                     at.as<uint16_t>(write), relu, bf16::Round()}};
    };
    p.step(std::move(step));
  };
  if (g.repeats) {
    emit(
        p.read(weights, Version(Layout::kRowMajor, Format::kBFloat16)),
        +[](const Binder& at, BufferId id) { return RowWeights{at.as<uint16_t>(id)}; });
  } else if (p.parameters_are_fixed()) {
    const PackTiles pack{g};
    emit(
        pack_step<uint16_t>(p, name, weights, pack.size(), blocks(g.outputs, kOutputs), pack),
        +[](const Binder& at, BufferId id) { return TileWeights{at.as<uint16_t>(id)}; });
  } else {
    emit(
        p.read(weights, Layout::kRowMajor),
        +[](const Binder& at, BufferId id) { return FloatWeights{at(id)}; });
  }
}

void backward_data(Program& p, const std::string& name, const InnerProductGeometry& g,
                   TensorId diff_dst, TensorId weights, TensorId diff_src) {
  Step step;
  step.name = name;
  step.kernel = widths(g);
  step.flops = g.flops();
  if (g.repeats && g.outputs % 2 == 0) {
    const TensorId pairs = p.reshaped(weights, {g.outputs / 2, 2, g.k});
    step.reads = {p.read(diff_dst, kRows), p.read(pairs, kRows)};
    step.writes = {p.write(diff_src, kRows)};
    step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
      return Kernel{blocks(g.k, kShortStripe),
                    RepeatedBackwardData{g, at.as<uint16_t>(reads[0]), at.as<uint16_t>(reads[1]),
                                         at.as<uint16_t>(write)}};
    };
    return p.step(std::move(step));
  }
  step.reads = {p.read(diff_dst, kRows), p.read(weights, Layout::kRowMajor)};
  step.writes = {p.write(diff_src, kRows)};
  step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
    return Kernel{blocks(g.k, kStripe),
                  BackwardData{g, at.as<uint16_t>(reads[0]), at(reads[1]), at.as<uint16_t>(write)}};
  };
  p.step(std::move(step));
}

}  // namespace cafetiere::few_rows_bf16
