// SPDX-License-Identifier: Apache-2.0
#include "core/machine/bandwidth.h"

#include <utility>

#include "core/device/host_memory.h"
#include "core/device/open_page.h"

namespace cafetiere {
namespace {

using Vector = float __attribute__((vector_size(32)));
constexpr int64_t kVectors = 8;  // a turn of the loops

/// Adds up `count` vectors, a multiple of kVectors.
template <bool kOpens>
void read(const Vector* from, int64_t count) {
  constexpr int64_t kPage = kPageBytes / int64_t(sizeof(Vector)), kAhead = 4;
  Vector sums[kVectors] = {};
  for (int64_t i = 0; i < count; i += kVectors) {
    if (kOpens && i % kPage == 0) open_page(from + i + kAhead * kPage);
#pragma GCC unroll 8
    for (int64_t j = 0; j < kVectors; ++j) sums[j] += from[i + j];
  }
  for (Vector& sum : sums) asm volatile("" ::"m"(sum));
}

void copy(const Vector* from, Vector* to, int64_t count) {
  for (int64_t i = 0; i < count; i += kVectors) {
#pragma GCC unroll 8
    for (int64_t j = 0; j < kVectors; ++j) to[i + j] = from[i + j];
    asm volatile("" ::"r"(to)
                 : "memory");  // else it becomes memcpy, whose stores bypass the caches
  }
}

/// A thread's memory, of which a sample takes the next piece.
struct Share {
  Memory memory;
  int64_t next = 0;

  Vector* at(int64_t vector) const { return reinterpret_cast<Vector*>(memory.get()) + vector; }

  /// The first vector of the piece; all of them have been before it comes again.
  int64_t take(int64_t piece, int64_t count) {
    next = next + 2 * piece > count ? 0 : next + piece;
    return next;
  }
};

}  // namespace

Bandwidth measure_bandwidth(Crew& crew, int64_t bytes, bool prefetches, double seconds) {
  constexpr int64_t kSize = sizeof(Vector), kPiece = 1 << 20;
  const int64_t share =
      std::max<int64_t>(1, bytes / crew.threads() / (2 * kPageBytes)) * 2 * kPageBytes;
  const int64_t piece =
      std::min(kPiece, share / 2) / kSize;  // half: others' turn before it is back
  std::vector<Share> shares(static_cast<size_t>(crew.threads()));
  crew.each([&](int thread) {  // each thread touches its own pages first
    Result<Memory> own = allocate_host(share);
    if (own.ok()) shares[size_t(thread)].memory = std::move(*own);
  });
  for (const Share& own : shares) {
    if (!own.memory) return {};
  }
  const auto bytes_read = [&](int thread) {
    Share& own = shares[size_t(thread)];
    (prefetches ? read<true> : read<false>)(own.at(own.take(piece, share / kSize)), piece);
    return double(piece * kSize);
  };
  const auto bytes_copied = [&](int thread) {
    Share& own = shares[size_t(thread)];
    const int64_t half = share / kSize / 2, some = std::min(piece, half);
    const int64_t from = own.take(some, half);
    copy(own.at(from), own.at(from + half), some);
    return double(2 * some * kSize);
  };
  return {crew.rate(bytes_read, seconds) / 1e9, crew.rate(bytes_copied, seconds) / 1e9};
}

}  // namespace cafetiere
