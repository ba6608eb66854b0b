// SPDX-License-Identifier: Apache-2.0
// Shape: the sizes of a blob's axes, Caffe's rules for axis arguments included.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace cafetiere {

/// The dimensions of an n-d array, row-major. No axes means a scalar (count 1).
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(std::vector<int64_t> dims) : dims_(std::move(dims)) {}

  int axes() const { return static_cast<int>(dims_.size()); }
  int64_t operator[](int axis) const { return dims_[static_cast<size_t>(axis)]; }
  int64_t& operator[](int axis) { return dims_[static_cast<size_t>(axis)]; }
  const std::vector<int64_t>& dims() const { return dims_; }

  /// Product of all dimensions, or of those in [from, to).
  int64_t count() const { return count(0, axes()); }
  int64_t count(int from) const { return count(from, axes()); }
  int64_t count(int from, int to) const {
    int64_t n = 1;
    for (int i = from; i < to; ++i) n *= (*this)[i];
    return n;
  }

  /// A possibly negative axis as an index in [0, axes); an error names the valid range.
  Result<int> axis(int axis) const {
    const int n = axes();
    if (axis >= -n && axis < n) return axis < 0 ? axis + n : axis;
    return invalid_argument("axis " + std::to_string(axis) + " is out of range [" +
                            std::to_string(-n) + ", " + std::to_string(n - 1) + "] for shape " +
                            str());
  }

  /// Caffe's form: each dimension followed by a space, then the count: "64 20 12 12 (184320)".
  std::string str() const {
    std::string s;
    for (int64_t d : dims_) s += std::to_string(d) + " ";
    return s + "(" + std::to_string(count()) + ")";
  }

  bool operator==(const Shape&) const = default;

 private:
  std::vector<int64_t> dims_;
};

}  // namespace cafetiere
