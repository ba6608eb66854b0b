// SPDX-License-Identifier: Apache-2.0
// The weight gradient of few_rows_bf16.h.
#include <algorithm>
#include <array>
#include <functional>
#include <span>

#include "core/device/bfloat16.h"
#include "core/device/cpu/bf16_pack.h"
#include "core/device/cpu/bf16_product.h"
#include "core/device/cpu/cpu_device.h"
#include "core/device/cpu/few_rows_bf16.h"
#include "core/device/cpu/whole_pieces.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cafetiere::few_rows_bf16 {
namespace {

// Inputs of a row of the gradient: long enough for memory bandwidth.
constexpr int64_t kPiece = 4096;
constexpr int64_t kRowsTogether = 16;  // outputs per block

/// The images in pairs: [image / 2][input][2], up to whole steps of a product.
struct PairImages {
  InnerProductGeometry g;
  const uint16_t* x;
  uint16_t* pairs;

  void operator()(int pair) const {
    const uint16_t* const even = x + 2 * pair * g.k;
    const bool some = 2 * pair < g.n, two = 2 * pair + 1 < g.n;
    bf16::pair_rows(some ? even : nullptr, two ? even + g.k : nullptr, g.k, g.k,
                    pairs + 2 * pair * g.k);
  }
};

/// Uses streaming stores where possible: a row this long is read again only after all others.
void put_row(std::span<const float> row, bool add, float* to) {
  const float* const from = row.data();
  const int64_t count = int64_t(row.size());
  if (add) {
    for (int64_t i = 0; i < count; ++i) to[i] += from[i];
    return;
  }
#if defined(__x86_64__)
  if (reinterpret_cast<uintptr_t>(to) % 32 == 0) {
    for (int64_t i = 0; i < count; i += 8) _mm256_stream_ps(to + i, _mm256_load_ps(from + i));
    return;
  }
#endif
  std::copy_n(from, count, to);
}

/// Makes this thread's streaming stores visible to others before its later stores.
void end_streams() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

/// Computes the weight gradient of a few outputs, a piece of a row at a time.
struct BackwardWeights {
  InnerProductGeometry g;
  int64_t depth;
  const uint16_t *pairs, *dy;
  std::function<void(int64_t begin, std::span<const float>)> put;  ///< receives a piece

  void operator()(int block) const {
    const int64_t first = block * kRowsTogether;
    const int64_t outputs = std::min(kRowsTogether, g.outputs - first);
    const bf16::TileScope scope;
    alignas(64) std::array<uint16_t, kRowsTogether * kMostImages> rows{};
    alignas(64) std::array<float, kRowsTogether * kPiece> sums;
    for (int64_t n = 0; n < g.n; ++n) {
      for (int64_t o = 0; o < outputs; ++o) {
        rows[size_t(o * kMostImages + n)] = dy[n * g.outputs + first + o];
      }
    }
    for (int64_t k = 0; k < g.k; k += kPiece) {
      const int64_t inputs = std::min(kPiece, g.k - k);
      Bf16Product product(inputs, outputs, depth, g.k, kMostImages, kPiece, false);
      product.whole_rows = true;
      const uint16_t *const a = pairs + 2 * k, *const b = rows.data();
      product(&a, &b, sums.data(), 1);
      for (int64_t o = 0; o < outputs; ++o) {
        put((first + o) * g.k + k, std::span(sums).subspan(size_t(o * kPiece), size_t(inputs)));
      }
    }
    end_streams();
  }
};

}  // namespace

void backward_weights(Program& p, const std::string& name, const InnerProductGeometry& g,
                      TensorId src, TensorId diff_dst, Gradient diff_weights) {
  const int64_t depth = rounded_up(g.n, 32);
  Step pair;
  pair.name = name + " pairs";
  pair.kernel = "few images";
  pair.reads = {p.read(src, kRows)};
  const BufferId pairs = p.scratch(depth * g.k / 2);
  pair.writes = {pairs};
  pair.make = [=, read = pair.reads[0]](const Binder& at) {
    return Kernel{int(depth / 2), PairImages{g, at.as<uint16_t>(read), at.as<uint16_t>(pairs)}};
  };
  p.step(std::move(pair));

  Step step;
  step.name = name;
  step.kernel = widths(g);
  step.flops = g.flops();
  step.reads = {pairs, p.read(diff_dst, kRows)};
  step.writes = {p.write(diff_weights.tensor, Layout::kRowMajor)};
  const auto kernel = [=, reads = step.reads](const Binder& at, auto put) {
    return Kernel{
        blocks(g.outputs, kRowsTogether),
        BackwardWeights{g, depth, at.as<uint16_t>(reads[0]), at.as<uint16_t>(reads[1]), put}};
  };
  step.make = [=, write = step.writes[0]](const Binder& at) {
    return kernel(at,
                  [=, dw = at(write), run = at.run()](int64_t begin, std::span<const float> row) {
                    put_row(row, diff_weights.adds(*run), dw + begin);
                  });
  };
  step.make_update = [=](const Binder& at, size_t param) {
    return kernel(at, [=, run = at.run()](int64_t begin, std::span<const float> row) {
      if (run->update) run->update->apply(param, begin, row);
    });
  };
  p.step(std::move(step));
}

}  // namespace cafetiere::few_rows_bf16
