// SPDX-License-Identifier: Apache-2.0
// Values of a table's columns by their names.
#pragma once

#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cafetiere {

/// How often values occur.
using ValueCounts = std::map<std::string, uint64_t, std::less<>>;

/// A text that is a number and no more.
inline std::optional<double> as_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The values of a class, by number or by bytes.
std::vector<std::string> class_names(const ValueCounts& values);

}  // namespace cafetiere
