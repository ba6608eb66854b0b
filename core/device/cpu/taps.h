// Taps: which kernel elements meet which source pixels for each output pixel of a convolution.
#pragma once

#include <utility>
#include <vector>

#include "core/device/geometry.h"

namespace cafetiere {

/// One axis: taps[o] lists (kernel index, source index) for output index o, ascending by kernel.
using AxisTaps = std::vector<std::vector<std::pair<int, int>>>;

/// Forward: output o meets source o * stride - pad + k * dilation.
inline AxisTaps forward_taps(int64_t out, int64_t in, int64_t kernel, int64_t stride, int64_t pad,
                             int64_t dilation) {
  AxisTaps taps(static_cast<size_t>(out));
  for (int64_t o = 0; o < out; ++o) {
    for (int64_t k = 0; k < kernel; ++k) {
      const int64_t s = o * stride - pad + k * dilation;
      if (s >= 0 && s < in) taps[size_t(o)].emplace_back(int(k), int(s));
    }
  }
  return taps;
}

/// Backward: input i receives from output (i + pad - k * dilation) / stride. The kernel index is
/// flipped (kernel - 1 - k) so that it ascends with the source index.
inline AxisTaps backward_taps(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t pad,
                              int64_t dilation) {
  AxisTaps taps(static_cast<size_t>(in));
  for (int64_t i = 0; i < in; ++i) {
    for (int64_t k = kernel; k-- > 0;) {
      const int64_t scaled = i + pad - k * dilation;
      if (scaled >= 0 && scaled % stride == 0 && scaled / stride < out) {
        taps[size_t(i)].emplace_back(int(kernel - 1 - k), int(scaled / stride));
      }
    }
  }
  return taps;
}

}  // namespace cafetiere
