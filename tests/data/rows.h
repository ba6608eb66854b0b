// SPDX-License-Identifier: Apache-2.0
// Builds encoded rows for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace cafetiere {

/// Columns of rows one after the other, in the encoding of row_schema.h.
class RowBytes {
 public:
  RowBytes& add_size(uint32_t bytes) { return put(&bytes, sizeof bytes); }
  template <class T>
  RowBytes& add_all(const std::vector<T>& values) {
    add_size(static_cast<uint32_t>(values.size() * sizeof(T)));
    return put(values.data(), values.size() * sizeof(T));
  }
  template <class T>
  RowBytes& add(T value) {
    add_size(sizeof value);
    return put(&value, sizeof value);
  }
  RowBytes& text(std::string_view value) {
    add_size(static_cast<uint32_t>(value.size()));
    return put(value.data(), value.size());
  }
  std::span<const std::byte> span() const { return bytes_; }

 private:
  RowBytes& put(const void* data, size_t size) {
    if (size > 0) {
      const size_t before = bytes_.size();
      bytes_.resize(before + size);
      std::memcpy(bytes_.data() + before, data, size);
    }
    return *this;
  }
  std::vector<std::byte> bytes_;
};

}  // namespace cafetiere
