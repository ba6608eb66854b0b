// SPDX-License-Identifier: Apache-2.0
// Tables as CSV: RFC 4180 in UTF-8, with ends of lines of either kind.
#pragma once

#include <fstream>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace cafetiere {

/// Reads a CSV, record by record. Quotes count only where a cell begins with one; empty lines, and a mark
/// of the byte order in front, are passed over.
class CsvReader {
 public:
  explicit CsvReader(std::istream& in) : in_(*in.rdbuf()) {}

  /// The next record into `cells`; false at the end. An error: a quote that is not closed or that a cell
  /// does not end with, bytes that are not UTF-8.
  Result<bool> next(std::vector<std::string>* cells);
  /// The first record, which names the columns. An error: none, or two columns of a name.
  Result<std::vector<std::string>> head();
  /// The line that the last record ended with, from 1 on.
  int64_t line() const { return line_; }

 private:
  std::string first_bytes();
  Status read_quoted(std::string* cell);
  void end_line(int c);

  std::streambuf& in_;
  int64_t line_ = 0;
};

/// Opens a CSV. An error: no such file, or one of Parquet; `command` is that of Python's that takes it.
Result<std::ifstream> open_csv(const std::string& path, std::string_view command);

/// A cell as it is written: in quotes where it has to be.
std::string csv_cell(std::string_view text);

}  // namespace cafetiere
