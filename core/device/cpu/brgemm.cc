// SPDX-License-Identifier: Apache-2.0
#include "core/device/cpu/brgemm.h"

#include <libxsmm.h>

#include <algorithm>
#include <array>

#include "core/device/cpu/lane_chunks.h"
#include "core/device/cpu/rest_rows.h"
#include "core/device/isa.h"

namespace cafetiere {
namespace {

constexpr int64_t kMaxBatch = 64;

// ---- without generated code: each element of C is summed in the order of k ---------------------

constexpr int64_t kColumns = 4;  // of C, with sums in registers

struct Operands {
  const float *a, *b;
  int64_t lda, b_along_k, b_along_n, ldc, depth;
  bool add;

  float b_at(int64_t k, int64_t col) const { return b[k * b_along_k + col * b_along_n]; }
};

/// A block of C, kOctets * 8 rows high.
template <int64_t kOctets, int64_t kCols>
void multiply_block(const Operands& of, int64_t row, int64_t col, float* c) {
  Simd8 sums[kCols][kOctets] = {};
  float* out = c + col * of.ldc + row;
  for (int64_t j = 0; of.add && j < kCols; ++j) {
    for (int64_t o = 0; o < kOctets; ++o) {
      sums[j][o] = load_octet(out + j * of.ldc + o * kOctet, kOctet);
    }
  }
  for (int64_t k = 0; k < of.depth; ++k) {
    const float* column = of.a + k * of.lda + row;
    Simd8 a[kOctets];
    for (int64_t o = 0; o < kOctets; ++o) a[o] = load_octet(column + o * kOctet, kOctet);
    for (int64_t j = 0; j < kCols; ++j) {
      const float factor = of.b_at(k, col + j);
      for (int64_t o = 0; o < kOctets; ++o) sums[j][o] += factor * a[o];
    }
  }
  for (int64_t j = 0; j < kCols; ++j) {
    for (int64_t o = 0; o < kOctets; ++o) {
      store_octet(out + j * of.ldc + o * kOctet, sums[j][o], kOctet);
    }
  }
}

template <int64_t kCols>
void multiply_columns(const Operands& of, int64_t m, int64_t col, float* c) {
  int64_t row = 0;
  for (; row + 2 * kOctet <= m; row += 2 * kOctet) multiply_block<2, kCols>(of, row, col, c);
  for (; row + kOctet <= m; row += kOctet) multiply_block<1, kCols>(of, row, col, c);
  for (; row < m; ++row) {
    for (int64_t j = col; j < col + kCols; ++j) {
      float* out = c + j * of.ldc + row;
      float sum = of.add ? *out : 0;
      for (int64_t k = 0; k < of.depth; ++k) sum += of.b_at(k, j) * of.a[k * of.lda + row];
      *out = sum;
    }
  }
}

}  // namespace

Brgemm::Brgemm(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc, bool add,
               B form)
    : m_(m), n_(n), k_(k), lda_(lda), ldb_(ldb), ldc_(ldc), form_(form) {
  const int64_t pieces = (k + kDepth - 1) / kDepth;
  const int64_t depth = (k + pieces - 1) / pieces;
  batch_ = pieces > 1 ? 1 : std::clamp<int64_t>(kDepth / k, 1, kMaxBatch);
  rest_ = RestRows::of(m);
  first_ = generate(depth, add);
  next_ = add ? first_ : generate(depth, true);
  last_ = k % depth == 0 ? next_ : generate(k % depth, true);
}

Brgemm::Kernel Brgemm::generate(int64_t depth, bool add) const {
  (void)instruction_set();  // which may lower the set that libxsmm generates for
  if (rest_ == m_) return {nullptr, depth, add};
  const libxsmm_blasint la = int(lda_), lb = int(ldb_), lc = int(ldc_);
  const float alpha = 1, beta = add ? 1.f : 0.f;
  const int flags = form_ == B::kRows ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
  const int prefetch = LIBXSMM_GEMM_PREFETCH_NONE;
  const auto jit = libxsmm_smmdispatch_reducebatch_addr(int(m_ - rest_), int(n_), int(depth), &la,
                                                        &lb, &lc, &alpha, &beta, &flags, &prefetch);
  return {reinterpret_cast<Jit>(jit), depth, add};
}

void Brgemm::operator()(const float* const* a, const float* const* b, float* c,
                        int64_t count) const {
  if (k_ > kDepth)
    deep(a, b, c, count);
  else
    shallow(a, b, c, count);
}

/// Each product divided along its depth.
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

/// Several products per call.
void Brgemm::shallow(const float* const* a, const float* const* b, float* c, int64_t count) const {
  std::array<const float*, kMaxBatch> as, bs;  // which call() may change
  for (int64_t i = 0; i < count; i += batch_) {
    const int64_t some = std::min(batch_, count - i);
    std::copy_n(a + i, some, as.begin());
    std::copy_n(b + i, some, bs.begin());
    call(i == 0 ? first_ : next_, as.data(), bs.data(), c, some);
  }
}

void Brgemm::call(const Kernel& kernel, const float** a, const float** b, float* c,
                  int64_t count) const {
  if (!kernel.jit && rest_ < m_) {
    for (int64_t i = 0; i < count; ++i) plain(i == 0 ? kernel : next_, a[i], b[i], c);
    return;
  }
  if (rest_ > 0) {  // first: the generated code advances the addresses
    const bool rows = form_ == B::kRows;
    const RestRows rest{.first = m_ - rest_,
                        .rows = rest_,
                        .n = n_,
                        .depth = kernel.depth,
                        .lda = lda_,
                        .b_along_k = rows ? ldb_ : 1,
                        .b_along_n = rows ? 1 : ldb_,
                        .ldc = ldc_,
                        .add = kernel.add};
    rest.multiply(a, b, c, count);
  }
  if (kernel.jit) {
    const unsigned long long batches = static_cast<unsigned long long>(count);
    kernel.jit(a, b, c, &batches);
  }
}

void Brgemm::plain(const Kernel& kernel, const float* a, const float* b, float* c) const {
  const bool rows = form_ == B::kRows;
  const Operands all{a, b, lda_, rows ? ldb_ : 1, rows ? 1 : ldb_, ldc_, kernel.depth, kernel.add};
  int64_t col = 0;
  for (; col + kColumns <= n_; col += kColumns) multiply_columns<kColumns>(all, m_, col, c);
  for (; col < n_; ++col) multiply_columns<1>(all, m_, col, c);
}

}  // namespace cafetiere
