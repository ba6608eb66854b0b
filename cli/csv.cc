// SPDX-License-Identifier: Apache-2.0
#include "cli/csv.h"

#include <fmt/format.h>

namespace cafetiere {
namespace {

constexpr int kEndOfFile = std::istream::traits_type::eof();

bool ends_line(int c) { return c == '\n' || c == '\r' || c == kEndOfFile; }

}  // namespace

Result<bool> CsvReader::next(std::vector<std::string>* cells) {
  cells->clear();
  if (in_.peek() == kEndOfFile) return false;
  std::string cell;
  while (true) {
    if (in_.peek() == '"') {
      in_.get();
      CFT_TRY(read_quoted(&cell));
    }
    int c = in_.get();
    for (; c != ',' && !ends_line(c); c = in_.get()) cell += char(c);
    cells->push_back(std::move(cell));
    cell.clear();
    if (c == ',') continue;
    if (c == '\r' && in_.peek() == '\n') in_.get();
    ++line_;
    return true;
  }
}

Status CsvReader::read_quoted(std::string* cell) {
  const int64_t begin = line_ + 1;
  while (true) {
    const int c = in_.get();
    if (c == kEndOfFile) {
      return invalid_argument(fmt::format("line {}: a quote is not closed", begin));
    }
    if (c == '"' && in_.peek() != '"') return {};
    if (c == '"') in_.get();
    if (c == '\n') ++line_;
    *cell += char(c);
  }
}

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

}  // namespace cafetiere
