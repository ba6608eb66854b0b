#include "core/device/cpu/brgemm.h"

#include <libxsmm.h>

namespace cafetiere {

Brgemm::Brgemm(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc, bool add)
    : m_(m), n_(n), k_(k), lda_(lda), ldb_(ldb), ldc_(ldc), add_(add) {
  const libxsmm_blasint la = int(lda), lb = int(ldb), lc = int(ldc);
  const float alpha = 1, beta = add ? 1.f : 0.f;
  const int flags = LIBXSMM_GEMM_FLAG_NONE;
  const int prefetch = LIBXSMM_GEMM_PREFETCH_NONE;
  const auto kernel = libxsmm_smmdispatch_reducebatch_addr(int(m), int(n), int(k), &la, &lb, &lc,
                                                           &alpha, &beta, &flags, &prefetch);
  jit_ = reinterpret_cast<Jit>(kernel);
}

void Brgemm::operator()(const float** a, const float** b, float* c, int64_t count) const {
  if (!jit_) return plain(a, b, c, count);
  const unsigned long long batches = static_cast<unsigned long long>(count);
  jit_(a, b, c, &batches);
}

void Brgemm::plain(const float** a, const float** b, float* c, int64_t count) const {
  for (int64_t col = 0; col < n_; ++col) {
    float* out = c + col * ldc_;
    if (!add_) {
      for (int64_t row = 0; row < m_; ++row) out[row] = 0;
    }
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t k = 0; k < k_; ++k) {
        const float factor = b[i][col * ldb_ + k];
        const float* column = a[i] + k * lda_;
        for (int64_t row = 0; row < m_; ++row) out[row] += factor * column[row];
      }
    }
  }
}

}  // namespace cafetiere
