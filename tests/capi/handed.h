// SPDX-License-Identifier: Apache-2.0
// Copies of what functions of the C interface hand over, which is given back.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "cafetiere/c_api.h"

namespace cafetiere {

/// The text that function(args..., char**) hands over. A failed call fails the test; "" then.
template <class Function, class... Args>
std::string handed_text(Function function, Args... args) {
  char* text = nullptr;
  EXPECT_EQ(function(args..., &text), CFT_OK) << cft_last_error();
  const std::string copy = text ? text : "";
  cft_free(text);
  return copy;
}

/// The bytes that function(args..., void**, uint64_t*) hands over, likewise.
template <class Function, class... Args>
std::string handed_bytes(Function function, Args... args) {
  void* bytes = nullptr;
  uint64_t size = 0;
  EXPECT_EQ(function(args..., &bytes, &size), CFT_OK) << cft_last_error();
  const std::string copy(static_cast<const char*>(bytes), size);
  cft_free(bytes);
  return copy;
}

}  // namespace cafetiere
