// SPDX-License-Identifier: Apache-2.0
// Taps: the source pixels under the kernel elements for each output pixel of a convolution.
#pragma once

#include <utility>
#include <vector>

#include "core/device/geometry.h"

namespace cafetiere {

/// One axis: taps[o] lists (kernel index, source index) for output index o, in ascending order of
/// kernel index.
using AxisTaps = std::vector<std::vector<std::pair<int, int>>>;

/// Forward: output o reads source o * stride - pad + k * dilation.
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

/// The outputs of one axis that use a kernel index: output `out` + i * `out_step` reads source
/// `src` + i * `src_step`, for i < `count`.
struct Span {
  int64_t kernel, out, out_step, src, src_step, count;
};

/// The taps of outputs [begin, end) by kernel index. The outputs of an index are evenly spaced, so
/// each index gives one span.
inline std::vector<Span> spans(const AxisTaps& taps, int64_t begin, int64_t end, int64_t kernel) {
  std::vector<Span> list;
  for (int64_t k = 0; k < kernel; ++k) {
    Span span{k, 0, 1, 0, 1, 0};
    for (int64_t o = begin; o < end; ++o) {
      for (const auto& [index, source] : taps[size_t(o)]) {
        if (index != k) continue;
        if (span.count == 0) span.out = o, span.src = source;
        if (span.count == 1) span.out_step = o - span.out, span.src_step = source - span.src;
        ++span.count;
      }
    }
    if (span.count > 0) list.push_back(span);
  }
  return list;
}

}  // namespace cafetiere
