// SPDX-License-Identifier: Apache-2.0
// Bf16Product: the batch-reduce matrix product of bfloat16, with the interface of Brgemm.
#pragma once

#include <cstdint>
#include <string_view>

namespace cafetiere {

/// C(m x n) = [C +] sum over i of A_i(m x k) B_i(k x n), column-major, bfloat16 with float32 sums.
/// The k of A are stored in pairs, as the processors' instructions require: [k / 2][m][2], with a
/// zero after an odd k; columns of B are k elements each. m must be a multiple of kVector. The
/// rounding of sums depends only on the instruction set in use:
///
///  - "amx": even and odd k are accumulated separately over 32 k and then added to C;
///  - "avx512_bf16": each pair is accumulated into C, as defined by the processor's instruction;
///  - all others: like AMX, bitwise, with the compiler's vectors.
///
/// Values below the least normal number count as zero in all of them.
class Bf16Product {
 public:
  static constexpr int64_t kVector = 16;  ///< m must be a multiple of it

  Bf16Product() = default;
  /// For the instruction set in use. lda is half the distance in elements between pairs of k.
  Bf16Product(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc, bool add);
  /// For a set supported by this machine, for comparison.
  static Bf16Product of_set(std::string_view set, const Bf16Product& like);

  /// Must be called within a TileScope.
  void operator()(const uint16_t* const* a, const uint16_t* const* b, float* c,
                  int64_t count) const;

  int64_t m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;
  bool add = false;
  bool whole_rows = false;  ///< there is memory after B: columns may be read up to a multiple of 16

 private:
  using Run = void (*)(const Bf16Product&, const uint16_t* const* a, const uint16_t* const* b,
                       float* c, int64_t count);
  static Run run_of(std::string_view set);
  Run run_ = nullptr;
};

namespace bf16 {

/// Configures the tiles for this thread's products during its lifetime, if the set in use is "amx".
class TileScope {
 public:
  TileScope();
  ~TileScope();
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;

 private:
  bool tiles_;
};

/// The implementation of TileScope.
void configure_tiles();
void release_tiles();

/// The implementations for the instruction sets.
void multiply_by_tiles(const Bf16Product&, const uint16_t* const* a, const uint16_t* const* b,
                       float* c, int64_t count);
void multiply_by_amx(const Bf16Product&, const uint16_t* const* a, const uint16_t* const* b,
                     float* c, int64_t count);
void multiply_by_dots(const Bf16Product&, const uint16_t* const* a, const uint16_t* const* b,
                      float* c, int64_t count);

}  // namespace bf16
}  // namespace cafetiere
