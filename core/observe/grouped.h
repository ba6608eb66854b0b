// SPDX-License-Identifier: Apache-2.0
// Numbers as people write them.
#pragma once

#include <fmt/format.h>

#include <string>

namespace cafetiere {

/// 1234567.8 -> "1,234,568".
inline std::string grouped(double value) {
  std::string digits = fmt::format("{:.0f}", value);
  const int first = digits.front() == '-' ? 1 : 0;
  for (int at = static_cast<int>(digits.size()) - 3; at > first; at -= 3) digits.insert(at, 1, ',');
  return digits;
}

}  // namespace cafetiere
