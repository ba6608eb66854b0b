// SPDX-License-Identifier: Apache-2.0
#include "core/device/cpu/brgemm.h"

#include <libxsmm.h>

#include <algorithm>
#include <array>

namespace cafetiere {
namespace {

/// Summed a call: a panel of A this deep stays in the first cache while C is gone through, which
/// is worth a fifth to a third of the speed (measured on LeNet's products).
constexpr int64_t kDepth = 128;
constexpr int64_t kMaxBatch = 64;

}  // namespace

Brgemm::Brgemm(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc, bool add,
               B form)
    : m_(m), n_(n), k_(k), lda_(lda), ldb_(ldb), ldc_(ldc), form_(form) {
  const int64_t pieces = (k + kDepth - 1) / kDepth;
  const int64_t depth = (k + pieces - 1) / pieces;
  batch_ = pieces > 1 ? 1 : std::clamp<int64_t>(kDepth / k, 1, kMaxBatch);
  first_ = generate(depth, add);
  next_ = add ? first_ : generate(depth, true);
  last_ = k % depth == 0 ? next_ : generate(k % depth, true);
}

Brgemm::Kernel Brgemm::generate(int64_t depth, bool add) const {
  const libxsmm_blasint la = int(lda_), lb = int(ldb_), lc = int(ldc_);
  const float alpha = 1, beta = add ? 1.f : 0.f;
  const int flags = form_ == B::kRows ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
  const int prefetch = LIBXSMM_GEMM_PREFETCH_NONE;
  const auto jit = libxsmm_smmdispatch_reducebatch_addr(int(m_), int(n_), int(depth), &la, &lb, &lc,
                                                        &alpha, &beta, &flags, &prefetch);
  return {reinterpret_cast<Jit>(jit), depth, add};
}

void Brgemm::operator()(const float* const* a, const float* const* b, float* c,
                        int64_t count) const {
  if (k_ > kDepth)
    deep(a, b, c, count);
  else
    shallow(a, b, c, count);
}

/// Each product in pieces of its depth.
void Brgemm::deep(const float* const* a, const float* const* b, float* c, int64_t count) const {
  const Kernel* kernel = &first_;
  const int64_t along_k = form_ == B::kRows ? ldb_ : 1;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t k = 0; k < k_; k += next_.depth) {
      const float *from_a = a[i] + k * lda_, *from_b = b[i] + k * along_k;
      call(k + next_.depth > k_ ? last_ : *kernel, &from_a, &from_b, c, 1);
      kernel = &next_;
    }
  }
}

/// Several products a call.
void Brgemm::shallow(const float* const* a, const float* const* b, float* c, int64_t count) const {
  std::array<const float*, kMaxBatch> as, bs;  // the generated code advances the addresses
  for (int64_t i = 0; i < count; i += batch_) {
    const int64_t some = std::min(batch_, count - i);
    std::copy_n(a + i, some, as.begin());
    std::copy_n(b + i, some, bs.begin());
    call(i == 0 ? first_ : next_, as.data(), bs.data(), c, some);
  }
}

void Brgemm::call(const Kernel& kernel, const float** a, const float** b, float* c,
                  int64_t count) const {
  if (kernel.jit) {
    const unsigned long long batches = static_cast<unsigned long long>(count);
    kernel.jit(a, b, c, &batches);
    return;
  }
  for (int64_t i = 0; i < count; ++i) plain(i == 0 ? kernel : next_, a[i], b[i], c);
}

void Brgemm::plain(const Kernel& kernel, const float* a, const float* b, float* c) const {
  for (int64_t col = 0; col < n_; ++col) {
    float* out = c + col * ldc_;
    if (!kernel.add) std::fill_n(out, m_, 0.f);
    for (int64_t k = 0; k < kernel.depth; ++k) {
      const float factor = form_ == B::kRows ? b[k * ldb_ + col] : b[col * ldb_ + k];
      for (int64_t row = 0; row < m_; ++row) out[row] += factor * a[k * lda_ + row];
    }
  }
}

}  // namespace cafetiere
