// SPDX-License-Identifier: Apache-2.0
// Softmax over the channels of row-major tensors. If an image is a single row of channels, blocks
// are runs of rows, and a row's sum is accumulated in lanes; if each channel is a plane, blocks are
// pieces of the planes, and each lane is a position.
#include <algorithm>
#include <array>

#include "core/device/cpu/cpu_device.h"
#include "core/device/cpu/fold.h"
#include "core/device/row_major.h"
#include "core/device/vector_math.h"

namespace cafetiere {
namespace {

constexpr int64_t kPlanePiece = 256;  ///< positions: the values kept for each stay in the L1 cache
constexpr int64_t kRowsPiece = 1024;  ///< elements of short rows, for the same reason

constexpr auto kLarger = [](float a, float b) { return a < b ? b : a; };
constexpr auto kSum = [](auto a, auto b) { return a + b; };

/// The softmax of each of some rows. Short rows would leave vectors of exponentials partly empty:
/// they are computed for all rows together.
void softmax_rows(const float* x, float* y, int64_t rows, int64_t count) {
  for (int64_t i = 0; i < rows * count; i += count) {
    const float largest = fold(
        count, x[i], [=](int64_t c) { return x[i + c]; }, kLarger);
    CFT_INDEPENDENT
    for (int64_t c = i; c < i + count; ++c) y[c] = x[c] - largest;
  }
  CFT_INDEPENDENT
  for (int64_t i = 0; i < rows * count; ++i) y[i] = vec::exp(y[i]);
  for (int64_t i = 0; i < rows * count; i += count) {
    const float sum = fold(
        count, 0.F, [=](int64_t c) { return y[i + c]; }, kSum);
    CFT_INDEPENDENT
    for (int64_t c = i; c < i + count; ++c) y[c] /= sum;
  }
}

void softmax_rows_backward(const float* y, const float* dy, float* dx, int64_t rows,
                           int64_t count) {
  for (int64_t i = 0; i < rows * count; i += count) {
    const double dot = fold(
        count, 0.0, [=](int64_t c) { return double(y[i + c]) * dy[i + c]; }, kSum);
    CFT_INDEPENDENT
    for (int64_t c = i; c < i + count; ++c) dx[c] = y[c] * float(dy[c] - dot);
  }
}

/// Processes `width` positions of an image's planes, which are `stride` apart.
void softmax_planes(const float* x, float* y, int64_t channels, int64_t stride, int64_t width) {
  std::array<float, kPlanePiece> largest, sum{};
  std::copy_n(x, width, largest.begin());
  for (int64_t c = 1; c < channels; ++c) {
    const float* from = x + c * stride;
    for (int64_t i = 0; i < width; ++i) largest[size_t(i)] = kLarger(largest[size_t(i)], from[i]);
  }
  for (int64_t c = 0; c < channels; ++c) {
    const float* from = x + c * stride;
    float* to = y + c * stride;
    CFT_INDEPENDENT
    for (int64_t i = 0; i < width; ++i) {
      sum[size_t(i)] += to[i] = vec::exp(from[i] - largest[size_t(i)]);
    }
  }
  for (int64_t c = 0; c < channels; ++c) {
    float* to = y + c * stride;
    CFT_INDEPENDENT
    for (int64_t i = 0; i < width; ++i) to[i] /= sum[size_t(i)];
  }
}

void softmax_planes_backward(const float* y, const float* dy, float* dx, int64_t channels,
                             int64_t stride, int64_t width) {
  std::array<double, kPlanePiece> dot{};
  for (int64_t at = 0; at < channels * stride; at += stride) {
    for (int64_t i = 0; i < width; ++i) dot[size_t(i)] += double(y[at + i]) * dy[at + i];
  }
  for (int64_t at = 0; at < channels * stride; at += stride) {
    CFT_INDEPENDENT
    for (int64_t i = 0; i < width; ++i) dx[at + i] = y[at + i] * float(dy[at + i] - dot[size_t(i)]);
  }
}

/// A step over the images: rows(offset, count) for images that are rows, piece(offset, width) for
/// pieces of planes, both with the addresses of the step's tensors.
template <class Rows, class Piece>
void softmax_step(Program& p, const std::string& name, const std::vector<TensorId>& in,
                  TensorId out, Rows rows, Piece piece) {
  const Extents e(p.shape(out));
  const int64_t size = e.c * e.s, pieces = (e.s + kPlanePiece - 1) / kPlanePiece;
  if (e.s == 1) {
    return range_step(p, name, in, {out}, e.n,
                      [=](int64_t begin, int64_t end, const auto& from, const auto& to, auto&) {
                        const int64_t most = std::max<int64_t>(kRowsPiece / size, 1);
                        for (int64_t n = begin; n < end; n += most) {
                          rows(from, to[0], n * size, std::min(most, end - n));
                        }
                      });
  }
  range_step(p, name, in, {out}, e.n * pieces,
             [=](int64_t begin, int64_t end, const auto& from, const auto& to, auto&) {
               for (int64_t b = begin; b < end; ++b) {
                 const int64_t first = b % pieces * kPlanePiece;
                 piece(from, to[0], b / pieces * size + first, std::min(kPlanePiece, e.s - first));
               }
             });
}

}  // namespace

void CpuDevice::softmax(Program& p, const std::string& name, TensorId src, TensorId dst) {
  const Extents e(p.shape(src));
  softmax_step(
      p, name, {src}, dst,
      [e](const auto& in, float* out, int64_t at, int64_t rows) {
        softmax_rows(in[0] + at, out + at, rows, e.c);
      },
      [e](const auto& in, float* out, int64_t at, int64_t width) {
        softmax_planes(in[0] + at, out + at, e.c, e.s, width);
      });
}

void CpuDevice::softmax_backward(Program& p, const std::string& name, TensorId dst,
                                 TensorId diff_dst, TensorId diff_src) {
  const Extents e(p.shape(dst));
  softmax_step(
      p, name, {dst, diff_dst}, diff_src,
      [e](const auto& in, float* out, int64_t at, int64_t rows) {
        softmax_rows_backward(in[0] + at, in[1] + at, out + at, rows, e.c);
      },
      [e](const auto& in, float* out, int64_t at, int64_t width) {
        softmax_planes_backward(in[0] + at, in[1] + at, out + at, e.c, e.s, width);
      });
}

}  // namespace cafetiere
