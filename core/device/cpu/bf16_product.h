// SPDX-License-Identifier: Apache-2.0
// Bf16Product: the batch-reduce matrix product of bfloat16, in the form of Brgemm.
#pragma once

#include <cstdint>
#include <string_view>

namespace cafetiere {

/// C(m x n) = [C +] sum over i of A_i(m x k) B_i(k x n), column-major, of bfloat16 summed in float32.
/// A's k are stored in pairs, as the processors' instructions want them: [k / 2][m][2], an odd k being
/// followed by a zero; columns of B are k elements each. m is a multiple of kVector. Which sums are rounded
/// where depends on the instruction set in force alone:
///
///  - "amx": even and odd k are multiply-added apart over 32 k and then added to C;
///  - "avx512_bf16": each pair is multiply-added to C, as the processor's instruction defines it;
///  - all others: as AMX, with the same bytes, by the compiler's vectors.
///
/// Numbers below the least normal one count as zero in all of them.
class Bf16Product {
 public:
  static constexpr int64_t kVector = 16;  ///< m comes in multiples of it

  Bf16Product() = default;
  /// For the set in force. lda is half the elements from a pair of k to the next.
  Bf16Product(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc, bool add);
  /// For one that this machine has, for comparisons.
  static Bf16Product of_set(std::string_view set, const Bf16Product& like);

  /// In a TileScope.
  void operator()(const uint16_t* const* a, const uint16_t* const* b, float* c,
                  int64_t count) const;

  int64_t m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;
  bool add = false;
  bool whole_rows =
      false;  ///< there is memory behind B: columns up to a multiple of 16 may be read

 private:
  using Run = void (*)(const Bf16Product&, const uint16_t* const* a, const uint16_t* const* b,
                       float* c, int64_t count);
  static Run run_of(std::string_view set);
  Run run_ = nullptr;
};

namespace bf16 {

/// The tiles are configured for products of this thread while it lives, if the set in force is "amx".
class TileScope {
 public:
  TileScope();
  ~TileScope();
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;

 private:
  bool tiles_;
};

/// What it does.
void configure_tiles();
void release_tiles();

/// The products of the sets.
void multiply_by_tiles(const Bf16Product&, const uint16_t* const* a, const uint16_t* const* b,
                       float* c, int64_t count);
void multiply_by_amx(const Bf16Product&, const uint16_t* const* a, const uint16_t* const* b,
                     float* c, int64_t count);
void multiply_by_dots(const Bf16Product&, const uint16_t* const* a, const uint16_t* const* b,
                      float* c, int64_t count);

}  // namespace bf16
}  // namespace cafetiere
