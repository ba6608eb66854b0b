// SPDX-License-Identifier: Apache-2.0
#include "core/data/table_values.h"

#include <algorithm>
#include <cstdlib>

namespace cafetiere {

std::optional<double> number_of(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\n\v\f\r\x1c\x1d\x1e\x1f";  // as Python's float()
  const size_t first = text.find_first_not_of(kSpaces);
  if (first == text.npos) return {};
  text = text.substr(first, text.find_last_not_of(kSpaces) + 1 - first);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || text.ends_with(')')) return {};  // nan(...)
  // Beyond what a double holds: infinite, or 0.
  if (error == std::errc::result_out_of_range)
    return std::strtod(std::string(text).c_str(), nullptr);
  if (error != std::errc()) return {};
  return value;
}

std::vector<std::string> class_names(const ValueCounts& values) {
  std::vector<std::string> list;
  for (const auto& [value, count] : values) list.push_back(value);
  const bool numbers =
      std::ranges::all_of(list, [](const auto& text) { return as_number(text).has_value(); });
  if (numbers)
    std::ranges::stable_sort(list, {}, [](const auto& text) { return *as_number(text); });
  return list;
}

}  // namespace cafetiere
