// SPDX-License-Identifier: Apache-2.0
#include "core/data/db.h"

#include <fmt/format.h>
#include <lmdb.h>

#include <utility>
#include <vector>

#include "core/data/byte_file.h"
#include "core/data/lmdb_cursor.h"

namespace cafetiere {
namespace {

Status lmdb_error(const std::string& path, std::string_view what, int code) {
  return io_error(fmt::format("LMDB \"{}\": {}: {}", path, what, mdb_strerror(code)));
}

MDB_val value_of(std::string_view text) {
  return {text.size(), const_cast<char*>(text.data())};  // LMDB only reads it
}

struct EnvCloser {
  void operator()(MDB_env* env) const { mdb_env_close(env); }
};
struct TxnAborter {
  void operator()(MDB_txn* txn) const { mdb_txn_abort(txn); }
};
using Env = std::unique_ptr<MDB_env, EnvCloser>;
using Txn = std::unique_ptr<MDB_txn, TxnAborter>;

class LmdbReader : public DbReader {
 public:
  explicit LmdbReader(LmdbTree tree) : tree_(std::move(tree)) {}
  int64_t records() const override { return tree_.records; }
  Result<std::unique_ptr<DbCursor>> cursor() override {
    return std::unique_ptr<DbCursor>(new LmdbCursor(tree_));
  }

 private:
  LmdbTree tree_;
};

/// Buffers records until commit(), so that the transaction can be repeated with a larger map.
class LmdbWriter : public DbWriter {
 public:
  LmdbWriter(std::string path, Env env) : path_(std::move(path)), env_(std::move(env)) {}
  void put(std::string_view key, std::string_view value) override {
    pending_.emplace_back(key, value);
  }
  Status commit() override {
    int code = try_commit();
    while (code == MDB_MAP_FULL) {
      MDB_envinfo info{};
      mdb_env_info(env_.get(), &info);
      code = mdb_env_set_mapsize(env_.get(), 2 * info.me_mapsize);
      if (code == MDB_SUCCESS) code = try_commit();
    }
    if (code != MDB_SUCCESS) return lmdb_error(path_, "cannot write", code);
    pending_.clear();
    return {};
  }

 private:
  int try_commit() {
    MDB_txn* raw = nullptr;
    if (const int code = mdb_txn_begin(env_.get(), nullptr, 0, &raw)) return code;
    Txn txn(raw);
    MDB_dbi dbi;
    if (const int code = mdb_dbi_open(raw, nullptr, 0, &dbi)) return code;
    for (const auto& [key, value] : pending_) {
      MDB_val k = value_of(key), v = value_of(value);
      if (const int code = mdb_put(raw, dbi, &k, &v, 0)) return code;
    }
    return mdb_txn_commit(txn.release());
  }

  std::string path_;
  Env env_;
  std::vector<std::pair<std::string, std::string>> pending_;
};

}  // namespace

// Uses our own reader, which validates files and needs no lock: data sets do not change while they
// are read, their folder may be read-only, and the nets of several ranks may open the same one
// concurrently.
Result<std::unique_ptr<DbReader>> open_lmdb(const std::string& path) {
  const std::string file = path + "/data.mdb";
  CFT_ASSIGN(std::shared_ptr<ByteFile> mapped, map_file(file));
  CFT_ASSIGN(LmdbTree tree, LmdbTree::open(std::move(mapped), fmt::format("LMDB \"{}\"", file)));
  return std::unique_ptr<DbReader>(new LmdbReader(std::move(tree)));
}

Result<std::unique_ptr<DbWriter>> create_lmdb(const std::string& path) {
  MDB_env* raw = nullptr;
  if (const int code = mdb_env_create(&raw)) return lmdb_error(path, "mdb_env_create", code);
  Env env(raw);
  if (const int code = mdb_env_open(raw, path.c_str(), 0, 0664)) {
    return lmdb_error(path, "cannot open it", code);
  }
  return std::unique_ptr<DbWriter>(new LmdbWriter(path, std::move(env)));
}

}  // namespace cafetiere
