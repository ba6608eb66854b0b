// SPDX-License-Identifier: Apache-2.0
// Brgemm: the batch-reduce matrix product on which every contraction on the CPU is built.
#pragma once

#include <cstdint>

namespace cafetiere {

/// C(m x n) = [C +] sum over i of A_i(m x k) B_i(k x n), column-major, float32. The code is
/// generated for exactly this shape by libxsmm or, if code cannot be generated, vectorised by the
/// compiler. Every element of C is summed in the order of i, then k, for all callers.
class Brgemm {
 public:
  /// The storage of B: columns of k elements, or k rows of n.
  enum class B { kColumns, kRows };
  /// Depth per call: a panel of A of this depth stays in the L1 cache during a pass over C, which
  /// improves speed by a fifth to a third (measured on LeNet's products). Deeper products make
  /// several passes over C.
  static constexpr int64_t kDepth = 128;

  Brgemm() = default;
  Brgemm(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc, bool add,
         B form = B::kColumns);

  void operator()(const float* const* a, const float* const* b, float* c, int64_t count) const;
  void operator()(const float* a, const float* b, float* c) const { (*this)(&a, &b, c, 1); }

 private:
  using Jit = void (*)(const float** a, const float** b, float* c, const unsigned long long* count);
  /// The products of one depth, adding to C or overwriting it.
  struct Kernel {
    Jit jit = nullptr;
    int64_t depth = 0;
    bool add = false;
  };
  Kernel generate(int64_t depth, bool add) const;
  void call(const Kernel& kernel, const float** a, const float** b, float* c, int64_t count) const;
  void plain(const Kernel& kernel, const float* a, const float* b, float* c) const;
  void deep(const float* const* a, const float* const* b, float* c, int64_t count) const;
  void shallow(const float* const* a, const float* const* b, float* c, int64_t count) const;

  int64_t m_ = 0, n_ = 0, k_ = 0, lda_ = 0, ldb_ = 0, ldc_ = 0;
  B form_ = B::kColumns;
  int64_t batch_ = 1;           ///< products per call
  int64_t rest_ = 0;            ///< rows that the generated code leaves to RestRows
  Kernel first_, next_, last_;  ///< for the pieces of a sum: first, middle, short last
};

}  // namespace cafetiere
