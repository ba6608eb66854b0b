// SPDX-License-Identifier: Apache-2.0
// Tables as CSV: RFC 4180, with ends of lines of either kind.
#pragma once

#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace cafetiere {

/// Reads a CSV, record by record. Quotes count only where a cell begins with one.
class CsvReader {
 public:
  explicit CsvReader(std::istream& in) : in_(in) {}

  /// The next record into `cells`; false at the end. An error: a quote that is not closed.
  Result<bool> next(std::vector<std::string>* cells);
  /// The line that the last record ended with, from 1 on.
  int64_t line() const { return line_; }

 private:
  Status read_quoted(std::string* cell);

  std::istream& in_;
  int64_t line_ = 0;
};

/// A cell as it is written: in quotes where it has to be.
std::string csv_cell(std::string_view text);

}  // namespace cafetiere
