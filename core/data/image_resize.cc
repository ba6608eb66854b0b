// SPDX-License-Identifier: Apache-2.0
// Bilinear resizing of bytes. Reproduces the steps of OpenCV's INTER_LINEAR, whose results are the
// specification.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <type_traits>

#include "core/data/image.h"

namespace cafetiere {
namespace {

constexpr int kOne = 1 << 11;  // weights have 11 fractional bits

/// The two neighbours of a result, with weights in units of 1/kOne.
struct Tap {
  std::array<int, 2> at;
  std::array<int, 2> weight;
};

/// One tap for each of `to` results along an axis of `from` pixels. At the border, columns use only
/// the border pixel; rows use it twice with both weights, which rounds differently.
std::vector<Tap> make_taps(int from, int to, bool columns) {
  const double scale = 1.0 / (static_cast<double>(to) / from);
  std::vector<Tap> result(static_cast<size_t>(to));
  for (int i = 0; i < to; ++i) {
    float fraction = static_cast<float>((i + 0.5) * scale - 0.5);
    int first = static_cast<int>(std::floor(fraction));
    fraction -= static_cast<float>(first);
    if (columns && (first < 0 || first >= from - 1)) {
      first = std::clamp(first, 0, from - 1);
      fraction = 0;
    }
    const auto fixed = [](float weight) { return static_cast<int>(std::lrintf(weight * kOne)); };
    result[static_cast<size_t>(i)] = {
        {std::clamp(first, 0, from - 1), std::clamp(first + 1, 0, from - 1)},
        {fixed(1.0f - fraction), fixed(fraction)}};
  }
  return result;
}

template <size_t kValue>
using Constant = std::integral_constant<size_t, kValue>;

using Lanes = int32_t __attribute__((vector_size(16)));
using Halves = int16_t __attribute__((vector_size(16)));
using Bytes = uint8_t __attribute__((vector_size(16)));
constexpr size_t kLanes = 4;  // channels computed at once; surplus ones are overwritten

/// Converts four bytes to integers. The shuffle is a single instruction; for so short a vector, a
/// conversion is not.
Lanes load(const uint8_t* from) {
  Lanes four{};
  std::memcpy(&four, from, kLanes);
  const Bytes bytes = reinterpret_cast<Bytes>(four);
  return reinterpret_cast<Lanes>(
      __builtin_shufflevector(bytes, bytes, 0, 4, 4, 4, 1, 4, 4, 4, 2, 4, 4, 4, 3, 4, 4, 4));
}

void store(const Lanes& lanes, int16_t* to) {
  const Halves halves = reinterpret_cast<Halves>(lanes);
  const Halves low = __builtin_shufflevector(halves, halves, 0, 2, 4, 6, 0, 2, 4, 6);
  std::memcpy(to, &low, kLanes * sizeof(int16_t));
}

/// The taps of a row of pixels with several channels: the offsets of the two pixels.
struct Columns {
  std::vector<Tap> taps;
  size_t channels;
  size_t inside;  ///< number of taps for which loading kLanes bytes per pixel stays inside the row

  Columns(int from, int to, int count) : taps(make_taps(from, to, true)), channels(size_t(count)) {
    const auto loads = [&](const Tap& tap) {
      return tap.at[1] * count + int(kLanes) <= from * count;
    };
    inside = size_t(std::ranges::partition_point(taps, loads) - taps.begin());
    if (channels == 1 || channels > kLanes) inside = 0;
    for (Tap& tap : taps) tap.at[0] *= count, tap.at[1] *= count;
  }
};

/// Interpolates a row between its columns and drops the lowest 4 bits, which the next step does not
/// need: at most 32655. Up to four channels are computed together, for which `out` needs room for
/// kLanes more values. `Channels` is a constant where that produces better code.
template <class Channels>
void resize_row(const uint8_t* row, const Columns& columns, Channels channels, int16_t* out) {
  const Tap* tap = columns.taps.data();
  for (const Tap* const end = tap + columns.inside; tap != end; ++tap, out += channels) {
    const uint8_t *left = row + tap->at[0], *right = row + tap->at[1];
    store((load(left) * tap->weight[0] + load(right) * tap->weight[1]) >> 4, out);
  }
  for (const Tap* const end = columns.taps.data() + columns.taps.size(); tap != end; ++tap) {
    for (size_t c = 0; c < channels; ++c) {
      const int left = row[size_t(tap->at[0]) + c], right = row[size_t(tap->at[1]) + c];
      *out++ = static_cast<int16_t>((left * tap->weight[0] + right * tap->weight[1]) >> 4);
    }
  }
}

/// Computes a row of the result from two rows of interpolated columns.
void blend(const int16_t* upper, const int16_t* lower, const Tap& tap, size_t length, uint8_t* to) {
  const auto above = static_cast<int16_t>(tap.weight[0]),
             below = static_cast<int16_t>(tap.weight[1]);
  for (size_t i = 0; i < length; ++i) {
    const auto a = static_cast<int16_t>((above * upper[i]) >> 16);
    const auto b = static_cast<int16_t>((below * lower[i]) >> 16);
    to[i] = static_cast<uint8_t>((a + b + 2) >> 2);
  }
}

/// Halves both sizes: the rounded mean of four pixels.
void halve(const Image& image, Image& out) {
  const size_t channels = static_cast<size_t>(image.channels);
  const size_t stride = static_cast<size_t>(image.width) * channels;
  uint8_t* to = out.pixels.data();
  for (size_t y = 0; y < static_cast<size_t>(out.height); ++y) {
    for (size_t x = 0; x < static_cast<size_t>(out.width); ++x) {
      const uint8_t* p = image.pixels.data() + 2 * y * stride + 2 * x * channels;
      for (size_t c = 0; c < channels; ++c, ++p) {
        const int sum = p[0] + p[channels] + p[stride] + p[stride + channels];
        *to++ = static_cast<uint8_t>((sum + 2) >> 2);
      }
    }
  }
}

void interpolate(const Image& image, Image& out) {
  const Columns columns(image.width, out.width, image.channels);
  const size_t length = static_cast<size_t>(out.width) * static_cast<size_t>(out.channels);
  const size_t stride = static_cast<size_t>(image.width) * static_cast<size_t>(image.channels);
  const auto resize = [&](const uint8_t* row, int16_t* to) {
    if (image.channels == 1) return resize_row(row, columns, Constant<1>(), to);
    if (image.channels == 3) return resize_row(row, columns, Constant<3>(), to);
    resize_row(row, columns, static_cast<size_t>(image.channels), to);
  };
  std::vector<int16_t> memory(2 * (length + kLanes));
  std::array<int16_t*, 2> rows = {memory.data(), memory.data() + length + kLanes};
  std::array<int, 2> held = {-1, -1};  // the image row in each of the two buffers
  uint8_t* to = out.pixels.data();
  for (const Tap& tap : make_taps(image.height, out.height, false)) {
    if (held[1] == tap.at[0]) {
      std::swap(rows[0], rows[1]);
      std::swap(held[0], held[1]);
    }
    for (size_t k = 0; k < 2; ++k) {
      if (held[k] == tap.at[k]) continue;
      held[k] = tap.at[k];
      resize(image.pixels.data() + static_cast<size_t>(held[k]) * stride, rows[k]);
    }
    blend(rows[0], rows[1], tap, length, to);
    to += length;
  }
}

}  // namespace

Image resize_image(const Image& image, int height, int width) {
  if (image.height == height && image.width == width) return image;
  const auto values = size_t(height) * size_t(width) * size_t(image.channels);
  Image out{height, width, image.channels, std::vector<uint8_t>(values)};
  const bool half = image.height == 2 * height && image.width == 2 * width;
  half ? halve(image, out) : interpolate(image, out);
  return out;
}

}  // namespace cafetiere
