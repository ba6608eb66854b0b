// SPDX-License-Identifier: Apache-2.0
// The recurrent cells: the computation of one sample at one time step.
#pragma once

#include <cstdint>

#include "core/base/targets.h"
#include "core/device/isa.h"
#include "core/device/map.h"
#include "core/device/vector_math.h"

namespace cafetiere {

/// A long short-term memory cell (Hochreiter & Schmidhuber 1997) with a forget gate (Gers et al.
/// 2000): c = cont f c' + i g, h = o tanh(c). Its 4 d gate values are i, f, o and g, in that order:
/// sigmoids of their inputs, except for g = tanh. cont = 0 begins a new sequence.
struct LstmCell {
  static constexpr int kGates = 4;
  static constexpr bool kHasCell = true;

  /// `gates` holds the gates' inputs on entry and their activations on return.
  [[gnu::always_inline]] static void forward(int64_t d, float cont, const float* c_before,
                                             float* gates, float* c, float* h) {
    CFT_INDEPENDENT
    for (int64_t k = 0; k < 3 * d; ++k) gates[k] = vec::sigmoid(gates[k]);
    CFT_INDEPENDENT
    for (int64_t k = 3 * d; k < 4 * d; ++k) gates[k] = vec::tanh(gates[k]);
    const float *i = gates, *f = gates + d, *o = gates + 2 * d, *g = gates + 3 * d;
    CFT_INDEPENDENT
    for (int64_t k = 0; k < d; ++k) {
      c[k] = (cont == 0 ? 0.F : cont * f[k] * c_before[k]) + i[k] * g[k];
      h[k] = o[k] * vec::tanh(c[k]);
    }
  }

  /// Gradients with respect to the gates' inputs and to the previous c; dh or dc may be nullptr,
  /// meaning zeros.
  [[gnu::always_inline]] static void backward(int64_t d, float cont, const float* c_before,
                                              const float* gates, const float* c, const float* dh,
                                              const float* dc, float* dgates, float* dc_before) {
    const float *i = gates, *f = gates + d, *o = gates + 2 * d, *g = gates + 3 * d;
    CFT_INDEPENDENT
    for (int64_t k = 0; k < d; ++k) {
      const float squashed = vec::tanh(c[k]);
      const float down = dh ? dh[k] : 0.F;
      const float sum = (dc ? dc[k] : 0.F) + down * o[k] * (1 - squashed * squashed);
      dgates[k] = sum * g[k] * i[k] * (1 - i[k]);
      dgates[d + k] = cont == 0 ? 0.F : sum * cont * c_before[k] * f[k] * (1 - f[k]);
      dgates[2 * d + k] = down * squashed * o[k] * (1 - o[k]);
      dgates[3 * d + k] = sum * i[k] * (1 - g[k] * g[k]);
      dc_before[k] = sum * cont * f[k];
    }
  }
};

/// A simple recurrent cell (Elman 1990), h = tanh(input): its one gate value is h itself.
struct TanhCell {
  static constexpr int kGates = 1;
  static constexpr bool kHasCell = false;

  [[gnu::always_inline]] static void forward(int64_t d, float, const float*, float* gates, float*,
                                             float*) {
    CFT_INDEPENDENT
    for (int64_t k = 0; k < d; ++k) gates[k] = vec::tanh(gates[k]);
  }
  [[gnu::always_inline]] static void backward(int64_t d, float, const float*, const float* gates,
                                              const float*, const float* dh, const float*,
                                              float* dgates, float*) {
    CFT_INDEPENDENT
    for (int64_t k = 0; k < d; ++k) dgates[k] = dh ? dh[k] * (1 - gates[k] * gates[k]) : 0.F;
  }
};

/// The passes of a cell; all implementations give bitwise the same results.
struct CellPasses {
  void (*forward)(int64_t d, float cont, const float* c_before, float* gates, float* c, float* h);
  void (*backward)(int64_t d, float cont, const float* c_before, const float* gates, const float* c,
                   const float* dh, const float* dc, float* dgates, float* dc_before);
};

template <class Cell>
CellPasses plain_passes() {
  return {[](auto... args) { Cell::forward(args...); },
          [](auto... args) { Cell::backward(args...); }};
}

#if CFT_OTHER_TARGETS
// After all includes: inline functions defined there must run on any machine.
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,prefer-vector-width=512")

template <class Cell>
CellPasses wide_passes() {
  return {[](auto... args) { Cell::forward(args...); },
          [](auto... args) { Cell::backward(args...); }};
}

#pragma GCC pop_options
#else
template <class Cell>
CellPasses wide_passes() {
  return plain_passes<Cell>();
}
#endif

/// For the instruction set in use.
template <class Cell>
CellPasses cell_passes() {
  return has_wide_vectors(instruction_set()) ? wide_passes<Cell>() : plain_passes<Cell>();
}

}  // namespace cafetiere
