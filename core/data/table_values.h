// SPDX-License-Identifier: Apache-2.0
// Values of a table's columns, as text.
#pragma once

#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cafetiere {

/// The number of occurrences of each value.
using ValueCounts = std::map<std::string, uint64_t, std::less<>>;

/// The number that a class's text represents; empty unless the whole text is a double.
inline std::optional<double> as_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The number that a text is, as Python's float() reads it: spaces around it are passed over, inf
/// and nan are numbers, 1_000 is none.
std::optional<double> number_of(std::string_view text);

/// The sorted values of a class: by number if all are numbers, else by bytes.
std::vector<std::string> class_names(const ValueCounts& values);

}  // namespace cafetiere
