// SPDX-License-Identifier: Apache-2.0
// Bilinear resize of bytes: the steps of OpenCV's INTER_LINEAR, whose results are the
// specification.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/data/image.h"

namespace cafetiere {
namespace {

constexpr int kOne = 1 << 11;  // weights have 11 fractional bits

/// The two neighbours of a result, and their weights in 1/kOne.
struct Tap {
  std::array<int, 2> at;
  std::array<int, 2> weight;
};

/// One tap for each of `to` results along an axis of `from` pixels. Beyond the border, columns use
/// the border pixel alone; rows use it twice with both weights, which rounds differently.
std::vector<Tap> taps(int from, int to, bool columns) {
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

/// One row interpolated between its columns, in 1/kOne.
void resize_row(const uint8_t* row, const std::vector<Tap>& columns, int channels, int* out) {
  for (const Tap& tap : columns) {
    const uint8_t* left = row + tap.at[0] * channels;
    const uint8_t* right = row + tap.at[1] * channels;
    for (int c = 0; c < channels; ++c) {
      *out++ = left[c] * tap.weight[0] + right[c] * tap.weight[1];
    }
  }
}

/// Both sizes halved: the rounded mean of four pixels.
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
  const std::vector<Tap> columns = taps(image.width, out.width, true);
  const size_t length = static_cast<size_t>(out.width) * static_cast<size_t>(out.channels);
  const size_t stride = static_cast<size_t>(image.width) * static_cast<size_t>(image.channels);
  std::array<std::vector<int>, 2> rows = {std::vector<int>(length), std::vector<int>(length)};
  std::array<int, 2> held = {-1, -1};  // which row of the image each of them holds
  uint8_t* to = out.pixels.data();
  for (const Tap& tap : taps(image.height, out.height, false)) {
    if (held[1] == tap.at[0]) {
      std::swap(rows[0], rows[1]);
      std::swap(held[0], held[1]);
    }
    for (size_t k = 0; k < 2; ++k) {
      if (held[k] == tap.at[k]) continue;
      held[k] = tap.at[k];
      resize_row(image.pixels.data() + static_cast<size_t>(held[k]) * stride, columns,
                 image.channels, rows[k].data());
    }
    for (size_t i = 0; i < length; ++i) {
      const int upper = (tap.weight[0] * (rows[0][i] >> 4)) >> 16;
      const int lower = (tap.weight[1] * (rows[1][i] >> 4)) >> 16;
      *to++ = static_cast<uint8_t>((upper + lower + 2) >> 2);
    }
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
