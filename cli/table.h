// SPDX-License-Identifier: Apache-2.0
// Tables as text.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace cafetiere {

/// Columns as wide as their longest entry, numbers to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> head) { add(std::move(head)); }
  void add(std::vector<std::string> row) {
    widths_.resize(row.size(), 0);
    for (size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], row[i].size());
    rows_.push_back(std::move(row));
  }
  /// Lines of text, and an empty one; the first columns, which are texts, to the left.
  std::string text(size_t text_columns) const {
    std::string all;
    for (const auto& row : rows_) {
      std::string line;
      for (size_t i = 0; i < row.size(); ++i) {
        line += i < text_columns ? fmt::format("{:<{}}  ", row[i], widths_[i])
                                 : fmt::format("{:>{}}  ", row[i], widths_[i]);
      }
      all += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return all + "\n";
  }

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<size_t> widths_;
};

}  // namespace cafetiere
