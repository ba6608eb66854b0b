// SPDX-License-Identifier: Apache-2.0
#include "core/device/cpu/bf16_lines.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "core/device/cpu/bf16_pack.h"

namespace cafetiere::bf16 {
namespace {

constexpr int64_t kOct = 8;

/// Transposes 8 x 8 numbers: of eight rows of pixels, null ones as zeros, to eight pixels `pixel`
/// numbers apart, in ascending order. Numbers beyond a pixel are overwritten by the next one.
void transpose_octet(const std::array<const uint16_t*, kOct>& from, int64_t x, uint16_t* to,
                     int64_t pixel) {
  Eight rows[kOct] = {};
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i]) std::memcpy(&rows[i], from[i] + x, sizeof(Eight));
  }
  transpose(rows);
  for (int64_t i = 0; i < kOct; ++i) std::memcpy(to + i * pixel, &rows[i], sizeof(Eight));
}

/// Interleaves up to eight rows of `count` numbers.
void interleave_rows(std::span<const uint16_t* const> rows, int64_t count, uint16_t* to) {
  const int64_t pixel = int64_t(rows.size());
  std::array<const uint16_t*, kOct> from{};
  std::ranges::copy(rows, from.begin());
  int64_t x = 0;
  for (; x + kOct <= count; x += kOct) transpose_octet(from, x, to + x * pixel, pixel);
  for (; x < count; ++x) {
    for (int64_t r = 0; r < pixel; ++r) to[x * pixel + r] = rows[r] ? rows[r][x] : uint16_t(0);
  }
}

/// Interleaves rows of `count` pixels of three numbers, `distance` apart. Four numbers are copied
/// where another pixel follows: the fourth one is overwritten by it.
void interleave_triples(std::span<const uint16_t* const> rows, int64_t distance, int64_t count,
                        uint16_t* to) {
  constexpr std::array<uint16_t, 4> kZeros{};
  for (int64_t x = 0; x + 1 < count; ++x) {
    for (const uint16_t* row : rows) {
      std::memcpy(to, row ? row + x * distance : kZeros.data(), 4 * sizeof(uint16_t));
      to += 3;
    }
  }
  for (const uint16_t* row : rows) {
    std::copy_n(row ? row + (count - 1) * distance : kZeros.data(), 3, to);
    to += 3;
  }
}

}  // namespace

void Lines::lay_out(int64_t first, int64_t count, int64_t group, int64_t row0, uint16_t* to) const {
  for (int64_t i = first; i < first + count; ++i) {
    const uint16_t* image =
        src + i * w.rows.in * w.cols.in * w.channels * w.group + group * w.channels;
    for (int64_t phase : w.phases) {
      for (int64_t place = 0; place < w.places; ++place, to += w.width * w.pixel) {
        const int64_t row = (row0 + place) * w.rows.stride + phase + w.rows.origin;
        if (w.unfolded)
          unfold_row(image, row, to);
        else
          copy_row(image, row, to);
      }
    }
  }
  std::fill_n(to, w.slack(), uint16_t(0));
}

const uint16_t* Lines::source_row(const uint16_t* image, int64_t row) const {
  if (row < 0 || row >= w.rows.in) return nullptr;
  return image + row * w.cols.in * w.channels * w.group;
}

void Lines::copy_row(const uint16_t* image, int64_t row, uint16_t* to) const {
  const uint16_t* const from = source_row(image, row);
  if (!from) return std::fill_n(to, w.width * w.pixel, uint16_t(0)), void();
  const int64_t begin = w.begin(), end = w.end();
  std::fill_n(to, begin * w.pixel, uint16_t(0));
  copy_pixels(from + w.column(begin), end - begin, to + begin * w.pixel);
  std::fill_n(to + end * w.pixel, (w.width - end) * w.pixel, uint16_t(0));
}

void Lines::copy_pixels(const uint16_t* from, int64_t count, uint16_t* to) const {
  const int64_t distance = w.column_step();
  if (distance == w.channels) return std::copy_n(from, count * distance, to), void();
  for (int64_t x = 0; x < count; ++x)
    std::copy_n(from + x * distance, w.channels, to + x * w.pixel);
}

/// A place holds the channels of all rows of the kernel.
void Lines::unfold_row(const uint16_t* image, int64_t row, uint16_t* to) const {
  const int64_t begin = w.begin(), end = w.end();
  std::array<const uint16_t*, Window::kMostRows> held;
  size_t taps = 0;
  for (const WindowAxis::Tap& tap : w.rows.classes[0].taps) {
    const uint16_t* const from = source_row(image, row + tap.shift);
    held[taps++] = from ? from + w.column(begin) : nullptr;
  }
  std::fill_n(to, begin * w.pixel, uint16_t(0));
  if (end > begin) interleave({held.data(), taps}, end - begin, to + begin * w.pixel);
  std::fill_n(to + end * w.pixel, (w.width - end) * w.pixel, uint16_t(0));
}

/// Writes `count` places: the channels of a pixel of each row; null rows count as zeros.
void Lines::interleave(std::span<const uint16_t* const> rows, int64_t count, uint16_t* to) const {
  const int64_t distance = w.column_step();
  if (w.channels == 1 && distance == 1 && rows.size() <= kOct)
    return interleave_rows(rows, count, to);
  if (w.channels == 3) return interleave_triples(rows, distance, count, to);
  for (int64_t x = 0; x < count; ++x) {
    for (const uint16_t* row : rows) {
      if (row)
        std::copy_n(row + x * distance, w.channels, to);
      else
        std::fill_n(to, w.channels, uint16_t(0));
      to += w.channels;
    }
  }
}

}  // namespace cafetiere::bf16
