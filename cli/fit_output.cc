// SPDX-License-Identifier: Apache-2.0
#include "cli/fit_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace cafetiere {
namespace {

namespace fs = std::filesystem;

/// A model of a table is replaced, and nothing else.
Status check_files(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / "table.json", error)) return {};
  for (const char* name : {"net.prototxt", "model.caffemodel", "report.html"}) {
    if (!fs::exists(folder / name, error)) continue;
    return invalid_argument(
        fmt::format("{} holds {}, which is of no model of a table and would be lost; name another "
                    "folder by --out",
                    folder.string(), name));
  }
  return {};
}

/// Before the training, which may be long.
Status check_access(const fs::path& folder) {
  std::error_code error;
  fs::path there = fs::absolute(folder, error);
  while (!fs::exists(there, error) && there.has_relative_path()) there = there.parent_path();
  if (::access(there.c_str(), W_OK | X_OK) == 0) return {};
  return io_error(fmt::format("cannot write into {}: {}; name a folder for the model by --out",
                              there.string(), std::strerror(errno)));
}

}  // namespace

Result<std::string> output_folder(const std::string& table, const std::string& out) {
  const fs::path folder = out.empty() ? fs::path(table).replace_extension(".model") : fs::path(out);
  std::error_code error;
  const bool is_there = fs::exists(folder, error);
  if (is_there && !fs::is_directory(folder, error)) {
    return invalid_argument(
        fmt::format("{} is a file; name a folder for the model by --out", folder.string()));
  }
  if (is_there && out.empty() && !fs::is_empty(folder, error)) {
    return invalid_argument(fmt::format(
        "{0} is there already: --out {0} replaces the model in it, another folder keeps it",
        folder.string()));
  }
  if (is_there) CFT_TRY(check_files(folder));
  CFT_TRY(check_access(folder));
  return folder.string();
}

}  // namespace cafetiere
