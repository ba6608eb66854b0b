// SPDX-License-Identifier: Apache-2.0
// RestRows: the rows of a product beyond whole vectors. libxsmm's code for AVX2 has no masks: it
// computes such rows in pieces of four and of one, each of which takes as long as a vector.
#pragma once

#include <cstdint>

namespace cafetiere {

/// The last rows, fewer than 8, of C(m x n) = [C +] sum over i of A_i(m x depth) B_i(depth x n), as
/// in Brgemm, summed in the same order with the same bits as in AVX2 code.
struct RestRows {
  int64_t first, rows;  ///< of A and C
  int64_t n, depth;
  int64_t lda, b_along_k, b_along_n, ldc;
  bool add;

  /// How many of a product's m rows are to be computed here: 0 unless code is generated for AVX2.
  static int64_t of(int64_t m);

  void multiply(const float* const* a, const float* const* b, float* c, int64_t count) const;
};

}  // namespace cafetiere
