// SPDX-License-Identifier: Apache-2.0
#include "core/data/db.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace cafetiere {

std::string_view db_backend_name(DbBackend backend) {
  return backend == DbBackend::kLmdb ? "lmdb" : "leveldb";
}

Result<DbBackend> parse_db_backend(std::string_view name) {
  if (name == "lmdb") return DbBackend::kLmdb;
  if (name == "leveldb") return DbBackend::kLevelDb;
  return invalid_argument(
      fmt::format("unknown database backend \"{}\"; known backends: lmdb, leveldb", name));
}

Result<std::unique_ptr<DbReader>> open_db(const std::string& path, DbBackend backend) {
  const std::string_view name = db_backend_name(backend);
  const bool lmdb = backend == DbBackend::kLmdb;
  const std::filesystem::path folder(path);
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    return not_found(
        fmt::format("{} database \"{}\" not found; create it (cafetiere "
                    "convert_mnist, convert_imageset) or correct \"source\"",
                    name, path));
  }
  const bool has_lmdb = std::filesystem::exists(folder / "data.mdb", ignored);
  const bool has_leveldb = std::filesystem::exists(folder / "CURRENT", ignored);
  if (lmdb ? !has_lmdb : !has_leveldb) {
    const bool other = lmdb ? has_leveldb : has_lmdb;
    return invalid_argument(fmt::format("the folder \"{}\" is not a {} database; {}", path, name,
                                        other ? (lmdb ? "it is a LevelDB: set \"backend: LEVELDB\""
                                                      : "it is an LMDB: set \"backend: LMDB\"")
                                              : "correct \"source\""));
  }
  return lmdb ? open_lmdb(path) : open_leveldb(path);
}

Result<std::unique_ptr<DbWriter>> create_db(const std::string& path, DbBackend backend) {
  if (mkdir(path.c_str(), 0744) != 0) {
    return io_error(fmt::format("mkdir {} failed: {}; remove it first or name another folder", path,
                                std::strerror(errno)));
  }
  return backend == DbBackend::kLmdb ? create_lmdb(path) : create_leveldb(path);
}

}  // namespace cafetiere
