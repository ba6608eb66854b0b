// SPDX-License-Identifier: Apache-2.0
// Local response normalisation where channels are innermost. The gradient computes the sums again, which
// costs less than to keep them.
#pragma once

#include <cstdint>

#include "core/device/geometry.h"

namespace cafetiere {

/// Pixels of `channels` numbers, float or bfloat16, that follow each other.
struct LrnPixels {
  LrnGeometry g;
  int64_t channels;

  static constexpr int64_t kMostChannels = 1024, kMostWindow = 129;
  /// Whether a pixel and its window fit in the kernels' buffers.
  static bool fits(const LrnGeometry& g, int64_t channels) {
    return channels <= kMostChannels && g.size <= kMostWindow;
  }
};

/// The passes over pixels; all kinds give the same bits.
template <class T>
struct LrnPasses {
  /// y = x s^-beta with s = k + alpha / size * the sum of x^2 over the window.
  void (*forward)(const LrnPixels& p, int64_t pixels, const T* x, T* y);
  /// dx = dy s^-beta - 2 alpha beta / size x * the sum of dy x s^(-beta - 1) over the window.
  void (*backward)(const LrnPixels& p, int64_t pixels, const T* x, const T* dy, T* dx);
};

/// Those of the instruction set in force.
template <class T>
LrnPasses<T> lrn_passes();
/// For comparisons; the second are for machines that have AVX-512.
template <class T>
LrnPasses<T> plain_lrn_passes();
template <class T>
LrnPasses<T> wide_lrn_passes();

}  // namespace cafetiere
