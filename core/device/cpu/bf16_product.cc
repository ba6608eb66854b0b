// SPDX-License-Identifier: Apache-2.0
#include "core/device/cpu/bf16_product.h"

#include "core/device/isa.h"

namespace cafetiere {

Bf16Product::Bf16Product(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc,
                         bool add)
    : m(m), n(n), k(k), lda(lda), ldb(ldb), ldc(ldc), add(add), run_(run_of(instruction_set())) {}

Bf16Product Bf16Product::of_set(std::string_view set, const Bf16Product& like) {
  Bf16Product product = like;
  product.run_ = run_of(set);
  return product;
}

Bf16Product::Run Bf16Product::run_of(std::string_view set) {
  if (set == "amx") return bf16::multiply_by_amx;
  return set == "avx512_bf16" ? bf16::multiply_by_dots : bf16::multiply_by_tiles;
}

void Bf16Product::operator()(const uint16_t* const* a, const uint16_t* const* b, float* c,
                             int64_t count) const {
  run_(*this, a, b, c, count);
}

namespace bf16 {

TileScope::TileScope() : tiles_(instruction_set() == "amx") {
  if (tiles_) configure_tiles();
}

TileScope::~TileScope() {
  if (tiles_) release_tiles();
}

}  // namespace bf16
}  // namespace cafetiere
