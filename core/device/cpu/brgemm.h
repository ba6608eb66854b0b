// Brgemm: the batch-reduce matrix product that every contraction on the CPU is made of.
#pragma once

#include <cstdint>

namespace cafetiere {

/// C(m x n) = [C +] sum over i of A_i(m x k) B_i(k x n), column-major, float32, generated for
/// exactly this shape by libxsmm; plain loops where code cannot be generated. The order of the sum
/// is i, then k, for every element of C, whoever calls it.
class Brgemm {
 public:
  Brgemm() = default;
  Brgemm(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc, bool add);

  /// The arrays of addresses are used up: the generated code advances them.
  void operator()(const float** a, const float** b, float* c, int64_t count) const;
  void operator()(const float* a, const float* b, float* c) const { (*this)(&a, &b, c, 1); }

 private:
  void plain(const float** a, const float** b, float* c, int64_t count) const;

  using Jit = void (*)(const float** a, const float** b, float* c, const unsigned long long* count);
  Jit jit_ = nullptr;
  int64_t m_ = 0, n_ = 0, k_ = 0, lda_ = 0, ldb_ = 0, ldc_ = 0;
  bool add_ = false;
};

}  // namespace cafetiere
