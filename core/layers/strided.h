// SPDX-License-Identifier: Apache-2.0
// Strided: a box of elements inside a row-major tensor, with its axes in any order. Crop and
// Permute copy out of it and into it.
#pragma once

#include <cstdint>
#include <vector>

namespace cafetiere {

/// Element (i0, i1, ..) of the box is element offset + i0 strides[0] + i1 strides[1] + .. of the
/// tensor.
struct Strided {
  std::vector<int64_t> dims, strides;  ///< at least one axis
  int64_t offset = 0;

  /// The number of lines along the last axis.
  int64_t lines() const {
    int64_t count = 1;
    for (size_t a = 0; a + 1 < dims.size(); ++a) count *= dims[a];
    return count;
  }
  /// The offset of a line's first element in the tensor.
  int64_t begin_of(int64_t line) const {
    int64_t at = offset;
    for (size_t a = dims.size() - 1; a-- > 0;) {
      at += line % dims[a] * strides[a];
      line /= dims[a];
    }
    return at;
  }

  /// Copies lines [begin, end) of the box to `dense`.
  void read(const float* tensor, float* dense, int64_t begin, int64_t end) const {
    const int64_t length = dims.back(), stride = strides.back();
    for (int64_t line = begin; line < end; ++line) {
      const float* from = tensor + begin_of(line);
      float* to = dense + line * length;
      for (int64_t i = 0; i < length; ++i) to[i] = from[i * stride];
    }
  }
  /// Copies `dense` to all lines of the box.
  void write(const float* dense, float* tensor) const {
    const int64_t length = dims.back(), stride = strides.back();
    for (int64_t line = 0; line < lines(); ++line) {
      const float* from = dense + line * length;
      float* to = tensor + begin_of(line);
      for (int64_t i = 0; i < length; ++i) to[i * stride] = from[i];
    }
  }
};

/// The strides of a row-major tensor.
inline std::vector<int64_t> row_major_strides(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t a = dims.size(); a-- > 1;) strides[a - 1] = strides[a] * dims[a];
  return strides;
}

}  // namespace cafetiere
