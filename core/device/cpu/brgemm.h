// SPDX-License-Identifier: Apache-2.0
// Brgemm: the batch-reduce matrix product on which every contraction on the CPU is built.
#pragma once

#include <cstdint>

namespace cafetiere {

/// C(m x n) = [C +] sum over i of A_i(m x k) B_i(k x n), column-major, float32, generated for
/// exactly this shape by libxsmm; by the compiler's vectors where code cannot be generated. Every
/// element of C is summed in the order i, then k, for any caller.
class Brgemm {
 public:
  /// How B is stored: columns of k elements, or k rows of n.
  enum class B { kColumns, kRows };
  /// Summed a call: a panel of A of this depth stays in the L1 cache during a pass over C, which is
  /// worth a fifth to a third of the speed (measured on LeNet's products). Deeper ones pass over C
  /// several times.
  static constexpr int64_t kDepth = 128;

  Brgemm() = default;
  Brgemm(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc, bool add,
         B form = B::kColumns);

  void operator()(const float* const* a, const float* const* b, float* c, int64_t count) const;
  void operator()(const float* a, const float* b, float* c) const { (*this)(&a, &b, c, 1); }

 private:
  using Jit = void (*)(const float** a, const float** b, float* c, const unsigned long long* count);
  /// Products of one depth, adding to C or replacing it.
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
  int64_t batch_ = 1;           ///< products a call
  Kernel first_, next_, last_;  ///< of a sum: its first piece, the following, the short last one
};

}  // namespace cafetiere
