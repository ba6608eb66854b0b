// SPDX-License-Identifier: Apache-2.0
#include "cli/csv.h"

#include <fmt/format.h>
#include <google/protobuf/stubs/common.h>

#include <algorithm>
#include <filesystem>

namespace cafetiere {
namespace {

constexpr int kEndOfFile = std::istream::traits_type::eof();

bool ends_line(int c) { return c == '\n' || c == '\r' || c == kEndOfFile; }

bool is_utf8(const std::string& text) {
  return google::protobuf::internal::IsStructurallyValidUTF8(text.data(), int(text.size()));
}

bool holds_parquet(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".parquet") return true;
  }
  return false;
}

}  // namespace

Result<bool> CsvReader::next(std::vector<std::string>* cells) {
  cells->clear();
  std::string cell = line_ == 0 ? first_bytes() : "";
  while (cell.empty() && ends_line(in_.sgetc())) {
    const int c = in_.sbumpc();
    if (c == kEndOfFile) return false;
    end_line(c);
  }
  while (true) {
    const bool quoted = cell.empty() && in_.sgetc() == '"';
    if (quoted) {
      in_.sbumpc();
      CFT_TRY(read_quoted(&cell));
    }
    int c = in_.sbumpc();
    if (quoted && c != ',' && !ends_line(c)) {
      return invalid_argument(fmt::format(
          "line {}: text behind the quote that ends a cell; a quote inside is written twice",
          line_ + 1));
    }
    for (; c != ',' && !ends_line(c); c = in_.sbumpc()) cell += char(c);
    if (!is_utf8(cell)) {
      return invalid_argument(fmt::format("line {}: a cell is not UTF-8", line_ + 1));
    }
    cells->push_back(std::move(cell));
    cell.clear();
    if (c == ',') continue;
    end_line(c);
    return true;
  }
}

Result<std::vector<std::string>> CsvReader::head() {
  std::vector<std::string> names;
  CFT_ASSIGN(const bool more, next(&names));
  if (!more) return invalid_argument("there is no line that names the columns");
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (std::find(names.begin(), name, *name) != name) {
      return invalid_argument(fmt::format("two columns are called \"{}\"; rename one", *name));
    }
  }
  return names;
}

/// The file's first bytes, if they were read to look for a mark and are none.
std::string CsvReader::first_bytes() {
  if (in_.sgetc() != 0xEF) return "";
  std::string bytes(3, '\0');
  bytes.resize(size_t(in_.sgetn(bytes.data(), 3)));
  return bytes == "\xEF\xBB\xBF" ? "" : bytes;
}

Status CsvReader::read_quoted(std::string* cell) {
  const int64_t begin = line_ + 1;
  while (true) {
    const int c = in_.sbumpc();
    if (c == kEndOfFile) {
      return invalid_argument(fmt::format("line {}: a quote is not closed", begin));
    }
    if (c == '"' && in_.sgetc() != '"') return {};
    if (c == '"') in_.sbumpc();
    if (c == '\n') ++line_;
    *cell += char(c);
  }
}

void CsvReader::end_line(int c) {
  if (c == '\r' && in_.sgetc() == '\n') in_.sbumpc();
  ++line_;
}

Result<std::ifstream> open_csv(const std::string& path, std::string_view command) {
  std::error_code error;
  const bool is_folder = std::filesystem::is_directory(path, error);
  if (path.ends_with(".parquet") || (is_folder && holds_parquet(path))) {
    return invalid_argument(
        fmt::format("{} is Parquet, and this program reads CSV alone; the Python package reads it, "
                    "with pyarrow installed: `python -m cafetiere {}` with the same flags",
                    path, command));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return not_found("File not found: " + path);
  if (is_folder) return invalid_argument(path + " is a folder; name a CSV in it");
  return file;
}

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

}  // namespace cafetiere
