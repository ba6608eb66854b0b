#include "core/data/db.h"

#include <fmt/format.h>
#include <lmdb.h>

#include <utility>
#include <vector>

namespace cafetiere {
namespace {

Status lmdb_error(const std::string& path, std::string_view what, int code) {
  return io_error(fmt::format("LMDB \"{}\": {}: {}", path, what, mdb_strerror(code)));
}

std::string_view view(const MDB_val& v) { return {static_cast<const char*>(v.mv_data), v.mv_size}; }

MDB_val value_of(std::string_view text) {
  return {text.size(), const_cast<char*>(text.data())};  // LMDB reads it only
}

struct EnvCloser {
  void operator()(MDB_env* env) const { mdb_env_close(env); }
};
struct TxnAborter {
  void operator()(MDB_txn* txn) const { mdb_txn_abort(txn); }
};
struct CursorCloser {
  void operator()(MDB_cursor* cursor) const { mdb_cursor_close(cursor); }
};
using Env = std::unique_ptr<MDB_env, EnvCloser>;
using Txn = std::unique_ptr<MDB_txn, TxnAborter>;

Result<Env> open_env(const std::string& path, unsigned flags) {
  MDB_env* raw = nullptr;
  if (const int code = mdb_env_create(&raw)) return lmdb_error(path, "mdb_env_create", code);
  Env env(raw);
  if (const int code = mdb_env_open(raw, path.c_str(), flags, 0664)) {
    return lmdb_error(path, "cannot open it", code);
  }
  return env;
}

Result<Txn> begin(MDB_env* env, unsigned flags, const std::string& path, MDB_dbi* dbi) {
  MDB_txn* raw = nullptr;
  if (const int code = mdb_txn_begin(env, nullptr, flags, &raw)) {
    return lmdb_error(path, "cannot begin a transaction", code);
  }
  Txn txn(raw);
  if (const int code = mdb_dbi_open(raw, nullptr, 0, dbi)) {
    return lmdb_error(path, "cannot open the unnamed database", code);
  }
  return txn;
}

class LmdbCursor : public DbCursor {
 public:
  LmdbCursor(std::string path, Txn txn, MDB_cursor* cursor)
      : path_(std::move(path)), txn_(std::move(txn)), cursor_(cursor) {}
  Status first() override { return move(MDB_FIRST); }
  Status next() override { return move(MDB_NEXT); }
  bool valid() const override { return valid_; }
  std::string_view key() const override { return view(key_); }
  std::string_view value() const override { return view(value_); }

 private:
  Status move(MDB_cursor_op op) {
    const int code = mdb_cursor_get(cursor_.get(), &key_, &value_, op);
    valid_ = code == MDB_SUCCESS;
    return valid_ || code == MDB_NOTFOUND ? Status() : lmdb_error(path_, "cannot read", code);
  }

  std::string path_;
  Txn txn_;
  std::unique_ptr<MDB_cursor, CursorCloser> cursor_;
  MDB_val key_{}, value_{};
  bool valid_ = false;
};

class LmdbReader : public DbReader {
 public:
  LmdbReader(std::string path, Env env) : path_(std::move(path)), env_(std::move(env)) {}
  int64_t records() const override {
    MDB_stat stat{};
    mdb_env_stat(env_.get(), &stat);
    return static_cast<int64_t>(stat.ms_entries);
  }
  Result<std::unique_ptr<DbCursor>> cursor() override {
    MDB_dbi dbi;
    CFT_ASSIGN(Txn txn, begin(env_.get(), MDB_RDONLY, path_, &dbi));
    MDB_cursor* raw = nullptr;
    if (const int code = mdb_cursor_open(txn.get(), dbi, &raw)) {
      return lmdb_error(path_, "cannot open a cursor", code);
    }
    return std::unique_ptr<DbCursor>(new LmdbCursor(path_, std::move(txn), raw));
  }

 private:
  std::string path_;
  Env env_;
};

/// Keeps what was put until commit(), so that the transaction can be repeated with a larger map.
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

// Without a lock file: data sets do not change while they are read, their folder may be read-only,
// and LMDB forbids to open a locked database twice in a process, as the nets of several ranks do.
Result<std::unique_ptr<DbReader>> open_lmdb(const std::string& path) {
  CFT_ASSIGN(Env env, open_env(path, MDB_RDONLY | MDB_NOTLS | MDB_NOLOCK));
  return std::unique_ptr<DbReader>(new LmdbReader(path, std::move(env)));
}

Result<std::unique_ptr<DbWriter>> create_lmdb(const std::string& path) {
  CFT_ASSIGN(Env env, open_env(path, 0));
  return std::unique_ptr<DbWriter>(new LmdbWriter(path, std::move(env)));
}

}  // namespace cafetiere
