// SPDX-License-Identifier: Apache-2.0
#include "core/device/cpu/few_rows.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "core/device/cpu/biased_step.h"
#include "core/device/cpu/lane_chunks.h"
#include "core/device/cpu/plain_lanes.h"
#include "core/device/open_page.h"
#include "core/device/transpose.h"

namespace cafetiere::few_rows {
namespace {

constexpr int64_t kAtOnce = 8;  // rows whose sums stay in registers
constexpr int64_t kOctets = 4;  // of outputs per block
constexpr int64_t kOutputs = kOctets * kOctet;
constexpr int64_t kPage = kPageBytes / int64_t(sizeof(float));

struct Operands {
  InnerProductGeometry g;
  const float *x, *w, *bias;
  float* y;
  bool relu;
};

/// Consecutive inputs of up to kMost rows, as many as fit into the L1 cache. Rows in memory may be a
/// power of two apart, and so share few sets of L1; these do not.
template <int64_t kMost>
struct Inputs {
  static constexpr int64_t kCount = 4096 / kMost;
  static constexpr int64_t kDistance = kCount + kCacheLine;
  alignas(64) std::array<float, kMost * kDistance> values;

  void take(const Operands& at, int64_t begin, int64_t count) {
    for (int64_t n = 0; n < at.g.n; ++n) {
      std::copy_n(at.x + n * at.g.k + begin, count, values.data() + n * kDistance);
    }
  }
};

/// Consecutive inputs of some rows, and the weights of eight outputs; of fewer outputs the last one is
/// repeated.
struct Piece {
  const float* x;  ///< as in Inputs
  int64_t count;   ///< of inputs
  int64_t left;    ///< inputs from the first of these to a row's end
  std::array<const float*, kOctet> w;
};

/// Fetches the weights of the next piece. The rows of a block are far apart, and hardware prefetchers
/// keep up only with rows that are read page by page. Into the L2 cache, since rows that are a power
/// of two apart share few sets of L1.
template <int64_t kMost>
void fetch_next(const Piece& p, int64_t input) {
  constexpr int64_t kNext = Inputs<kMost>::kCount;
  constexpr bool kPages = kNext >= kPage;
  constexpr int kSecondLevel = 2;
  if (input + kNext >= p.left || input % (kPages ? kPage : kCacheLine) > 0) return;
  for (const float* row : p.w) {
    if (kPages) {
      open_page(row + input + kNext);
    } else {
      __builtin_prefetch(row + input + kNext, 0, kSecondLevel);
    }
  }
}

/// Adds the products of kN rows and the weights of an input to their sums.
template <int64_t kMost, int64_t kN>
void add_input(const Piece& p, int64_t input, const Simd8& weights, Simd8 (&sums)[kN]) {
  for (int64_t n = 0; n < kN; ++n) {
    const Simd8 value = PlainLanes::all(p.x[n * Inputs<kMost>::kDistance + input]);
    sums[n] = PlainLanes::multiply_add(weights, value, sums[n]);
  }
}

/// Adds to the outputs of kN rows, in lanes, input by input: the order of "brgemm", so that they do
/// not depend on the number of rows.
template <int64_t kMost, int64_t kN>
void add_piece(const Piece& p, Simd8* total) {
  Simd8 sums[kN];
  std::copy_n(total, kN, sums);
  int64_t i = 0;
  for (; i + kOctet <= p.count; i += kOctet) {
    fetch_next<kMost>(p, i);
    Simd8 weights[kOctet];
    for (int64_t o = 0; o < kOctet; ++o) weights[o] = load_octet(p.w[size_t(o)] + i, kOctet);
    transpose_8x8(weights);
    for (int64_t j = 0; j < kOctet; ++j) add_input<kMost>(p, i + j, weights[j], sums);
  }
  for (; i < p.count; ++i) {
    Simd8 weights;
    for (int64_t o = 0; o < kOctet; ++o) weights[o] = p.w[size_t(o)][i];
    add_input<kMost>(p, i, weights, sums);
  }
  std::copy_n(sums, kN, total);
}

/// add_piece for up to kAtOnce rows, by their number less one.
template <int64_t kMost>
constexpr auto kAddPiece = []<size_t... kLess>(std::index_sequence<kLess...>) {
  using AddPiece = void (*)(const Piece&, Simd8*);
  return std::array<AddPiece, sizeof...(kLess)>{add_piece<kMost, int64_t(kLess) + 1>...};
}
(std::make_index_sequence<size_t(std::min(kAtOnce, kMost))>());

/// The sums of eight outputs, from `first` on, of all rows.
struct Octet {
  const Operands& at;
  int64_t first, outputs;
  Simd8* sums;

  Octet(const Operands& at, int64_t first, Simd8* sums)
      : at(at), first(first), outputs(std::min(kOctet, at.g.outputs - first)), sums(sums) {}

  void start() const {
    std::fill_n(sums, at.g.n, at.bias ? load_octet(at.bias + first, outputs) : Simd8{});
  }

  template <int64_t kMost>
  void add(const Inputs<kMost>& inputs, int64_t begin, int64_t count) const {
    Piece piece{inputs.values.data(), count, at.g.k - begin, {}};
    for (int64_t i = 0; i < kOctet; ++i) {
      piece.w[size_t(i)] = at.w + (first + std::min(i, outputs - 1)) * at.g.k + begin;
    }
    for (int64_t n = 0; n < at.g.n; n += kAtOnce, piece.x += kAtOnce * Inputs<kMost>::kDistance) {
      kAddPiece<kMost>[size_t(std::min(kAtOnce, at.g.n - n) - 1)](piece, sums + n);
    }
  }

  void store() const {
    const Simd8 least = Simd8{} + (at.relu ? 0.F : -std::numeric_limits<float>::infinity());
    for (int64_t n = 0; n < at.g.n; ++n) {
      store_octet(at.y + n * at.g.outputs + first, sums[n] < least ? least : sums[n], outputs);
    }
  }
};

template <int64_t kMost>
void run_block(const Operands& at, int block) {
  Simd8 sums[kOctets][kMost];
  const auto each = [&](const auto& f) {
    for (int64_t o = 0; o < kOctets; ++o) {
      const int64_t first = block * kOutputs + o * kOctet;
      if (first < at.g.outputs) f(Octet(at, first, sums[o]));
    }
  };
  each([](const Octet& octet) { octet.start(); });
  Inputs<kMost> inputs;
  for (int64_t begin = 0; begin < at.g.k; begin += inputs.kCount) {
    const int64_t count = std::min(inputs.kCount, at.g.k - begin);
    inputs.take(at, begin, count);
    each([&](const Octet& octet) { octet.add(inputs, begin, count); });
  }
  each([](const Octet& octet) { octet.store(); });
}

}  // namespace

std::string declines(const InnerProductGeometry& g) {
  if (g.transposed) return "transposed weights";
  return g.n > kRows ? std::to_string(g.n) + " rows" : "";
}

void product(Program& p, const std::string& name, const InnerProductGeometry& g, TensorId src,
             TensorId weights, TensorId bias, TensorId dst, bool relu) {
  constexpr int64_t kVeryFew = 4;
  Step step = biased_step(p, name, "rows of weights transposed, lanes are outputs", g.flops(),
                          {p.read(src, Layout::kRowMajor), p.read(weights, Layout::kRowMajor)},
                          bias, dst, Layout::kRowMajor);
  step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
    const Operands operands{
        g, at(reads[0]), at(reads[1]), bias == kNoTensor ? nullptr : at(reads[2]), at(write), relu};
    const auto run = g.n <= kVeryFew ? run_block<kVeryFew> : run_block<kRows>;
    return Kernel{int((g.outputs + kOutputs - 1) / kOutputs),
                  [=](int block) { run(operands, block); }};
  };
  p.step(std::move(step));
}

}  // namespace cafetiere::few_rows
