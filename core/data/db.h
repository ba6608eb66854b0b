// SPDX-License-Identifier: Apache-2.0
// Databases of records in key order: a common interface to LMDB and LevelDB.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace cafetiere {

enum class DbBackend { kLevelDb, kLmdb };

/// "leveldb" or "lmdb".
std::string_view db_backend_name(DbBackend backend);
/// The backend of that name; the error lists both.
Result<DbBackend> parse_db_backend(std::string_view name);

/// A position in a database. Used by one thread at a time.
class DbCursor {
 public:
  virtual ~DbCursor() = default;
  /// Moves to the first record; valid() is false if there is none.
  virtual Status first() = 0;
  /// Moves to the record with this key or, if there is none, to the next one.
  virtual Status seek(std::string_view key) = 0;
  /// Moves to the next record; valid() is false after the last one.
  virtual Status next() = 0;
  virtual bool valid() const = 0;
  /// Key and value of the current record; valid until the cursor moves.
  virtual std::string_view key() const = 0;
  virtual std::string_view value() const = 0;
};

/// A database open for reading. Must outlive its cursors. Threads may use different cursors
/// concurrently.
class DbReader {
 public:
  virtual ~DbReader() = default;
  virtual int64_t records() const = 0;
  virtual Result<std::unique_ptr<DbCursor>> cursor() = 0;
};

/// Records per commit in the programs that write databases, as in Caffe.
inline constexpr int64_t kCommitEvery = 1000;

/// A new database. Records put after the last commit() are lost when the writer is destroyed.
class DbWriter {
 public:
  virtual ~DbWriter() = default;
  virtual void put(std::string_view key, std::string_view value) = 0;
  virtual Status commit() = 0;
};

/// Opens an existing database. LevelDB reads the whole database here to count its records, and
/// allows only one reader at a time; LMDB has neither limitation.
Result<std::unique_ptr<DbReader>> open_db(const std::string& path, DbBackend backend);

/// Creates the folder `path`, which must not exist, as Caffe's tools do.
Result<std::unique_ptr<DbWriter>> create_db(const std::string& path, DbBackend backend);

Result<std::unique_ptr<DbReader>> open_lmdb(const std::string& path);
Result<std::unique_ptr<DbWriter>> create_lmdb(const std::string& path);
/// `counted`: whether records() is needed.
Result<std::unique_ptr<DbReader>> open_leveldb(const std::string& path, bool counted = true);
Result<std::unique_ptr<DbWriter>> create_leveldb(const std::string& path);

}  // namespace cafetiere
