// SPDX-License-Identifier: Apache-2.0
// The passes of lrn_pixels.h: the file of each instruction set includes them once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "core/device/cpu/lane_chunks.h"
#include "core/device/cpu/lrn_pixels.h"
#include "core/device/cpu/lrn_power.h"
#include "core/device/map.h"

namespace cafetiere {
namespace {

template <class T>
constexpr Format kFormat = std::is_same_v<T, float> ? Format::kFloat32 : Format::kBFloat16;

/// A few pixels, whose numbers stay in the L1 cache.
struct Piece {
  static constexpr int64_t kNumbers = LrnPixels::kMostChannels + LrnPixels::kMostWindow;
  using Room = float[kNumbers];

  /// Calls f(first number, count) for each piece.
  template <class F>
  static void for_each(const LrnPixels& p, int64_t pixels, const F& f) {
    const int64_t end = pixels * p.channels;
    const int64_t size = kNumbers / (p.channels + p.g.size) * p.channels;
    for (int64_t i = 0; i < end; i += size) f(i, std::min(size, end - i));
  }
};

/// Prefetches the next piece while this one is computed.
template <class T>
void fetch(const T* from) {
  for (size_t i = 0; i < Piece::kNumbers; i += 64 / sizeof(T)) __builtin_prefetch(from + i);
}
template <class T>
void fetch_to_write(T* to) {
  for (size_t i = 0; i < Piece::kNumbers; i += 64 / sizeof(T)) prefetch_to_write(to + i);
}

template <class Size>
void sum_windows(const float* padded, int64_t channels, Size size, float* sums) {
  for (int64_t c = 0; c < channels; ++c) {
    float sum = padded[c];
    for (int64_t d = 1; d < size; ++d) sum += padded[c + d];
    sums[c] = sum;
  }
}

/// For each channel, the sum of value(i) over its window, for the pixels of a piece. All values are
/// written before any are read: a load that spans two recent stores would wait for both.
template <class F>
void sum_windows(const LrnPixels& p, int64_t count, const F& value, float* sums) {
  const int64_t half = p.g.size / 2, stride = p.channels + 2 * half;
  Piece::Room padded;
  float* to = padded;
  for (int64_t first = 0; first < count; first += p.channels, to += stride) {
    std::fill_n(to, half, 0.F);
    for (int64_t c = 0; c < p.channels; ++c) to[half + c] = value(first + c);
    std::fill_n(to + half + p.channels, half, 0.F);
  }
  const float* from = padded;
  for (int64_t first = 0; first < count; first += p.channels, from += stride) {
    if (p.g.size == 5) {
      sum_windows(from, p.channels, std::integral_constant<int64_t, 5>(), sums + first);
    } else {
      sum_windows(from, p.channels, p.g.size, sums + first);
    }
  }
}

/// s for the numbers of a piece.
inline void sums_of_squares(const LrnPixels& p, int64_t count, const float* x, float* s) {
  sum_windows(
      p, count, [=](int64_t i) { return x[i] * x[i]; }, s);
  const float k = p.g.k, share = p.g.alpha / float(p.g.size);
  for (int64_t i = 0; i < count; ++i) s[i] = k + share * s[i];
}

template <class T>
void lrn_forward(const LrnPixels& p, int64_t pixels, const T* x, T* y) {
  with_power(p.g.beta, [&](const auto& power) {
    Piece::for_each(p, pixels, [&](int64_t first, int64_t count) {
      Piece::Room in_room, s;
      fetch(x + first + count);
      fetch_to_write(y + first + count);
      const float* const in = load_floats(kFormat<T>, x, first, count, in_room);
      sums_of_squares(p, count, in, s);
      for (int64_t i = 0; i < count; ++i) s[i] = in[i] * power(s[i]);
      store_floats(kFormat<T>, s, count, y, first);
    });
  });
}

template <class T>
void lrn_backward(const LrnPixels& p, int64_t pixels, const T* x, const T* dy, T* dx) {
  const float ratio = 2 * p.g.alpha * p.g.beta / float(p.g.size);
  with_power(p.g.beta, [&](const auto& power) {
    Piece::for_each(p, pixels, [&](int64_t first, int64_t count) {
      Piece::Room in_room, diff_room, s, powers, sums;
      fetch(x + first + count);
      fetch(dy + first + count);
      fetch_to_write(dx + first + count);
      const float* const in = load_floats(kFormat<T>, x, first, count, in_room);
      const float* const diff = load_floats(kFormat<T>, dy, first, count, diff_room);
      sums_of_squares(p, count, in, s);
      for (int64_t i = 0; i < count; ++i) {
        powers[i] = power(s[i]);
        s[i] = diff[i] * in[i] * powers[i] * power.inverse(s[i], powers[i]);
      }
      sum_windows(
          p, count, [&](int64_t i) { return s[i]; }, sums);
      for (int64_t i = 0; i < count; ++i) s[i] = diff[i] * powers[i] - ratio * in[i] * sums[i];
      store_floats(kFormat<T>, s, count, dx, first);
    });
  });
}

}  // namespace
}  // namespace cafetiere
