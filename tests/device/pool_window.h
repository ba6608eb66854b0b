// SPDX-License-Identifier: Apache-2.0
// Windows of pooling to test passes over pixels on.
#pragma once

#include <cstdint>

#include "core/device/geometry.h"

namespace cafetiere {

/// A square window over one image of one channel.
inline PoolGeometry pool_window(int64_t in_h, int64_t in_w, int64_t out_h, int64_t out_w,
                                int64_t kernel, int64_t stride, int64_t pad) {
  return {.n = 1,
          .channels = 1,
          .in_h = in_h,
          .in_w = in_w,
          .out_h = out_h,
          .out_w = out_w,
          .kernel_h = kernel,
          .kernel_w = kernel,
          .stride_h = stride,
          .stride_w = stride,
          .pad_h = pad,
          .pad_w = pad};
}

}  // namespace cafetiere
