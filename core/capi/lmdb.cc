// SPDX-License-Identifier: Apache-2.0
// LMDB files: of this machine, or read through a caller's function.
#include <fmt/format.h>

#include <cstring>
#include <filesystem>

#include "core/capi/boundary.h"
#include "core/capi/db_handles.h"
#include "core/data/lmdb_cursor.h"

struct cft_lmdb {
  cafetiere::LmdbTree tree;
};

struct cft_lmdb_cursor {
  cafetiere::LmdbCursor cursor;
  bool begun = false;
};

namespace cafetiere::capi {
namespace {

constexpr uint64_t kLongestKey = 511;  // as liblmdb is compiled by default

/// A file that the caller reads.
class CallersFile : public ByteFile {
 public:
  explicit CallersFile(const cft_file& file) : file_(file) {}
  uint64_t size() const override { return file_.size; }
  Result<std::string_view> read(uint64_t offset, uint64_t bytes,
                                std::string* buffer) const override {
    buffer->resize(bytes);
    if (file_.read(file_.context, offset, buffer->data(), bytes) != 0) {
      return io_error(
          fmt::format("the caller could not read {} bytes at {} of its file", bytes, offset));
    }
    return std::string_view(*buffer);
  }

 private:
  cft_file file_;
};

Result<LmdbTree> open_tree(const char* path, const cft_file* given) {
  if (!path == !given) return invalid_argument("give a path or a file, and the other one as NULL");
  if (!path) {
    CFT_ASSIGN(const cft_file file, given_struct(given, "cft_file"));
    if (!file.read) return invalid_argument("cft_file.read is NULL");
    const std::string name =
        file.name ? fmt::format("LMDB \"{}\"", file.name) : "the caller's LMDB file";
    return LmdbTree::open(std::make_shared<CallersFile>(file), name);
  }
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  const std::string name = folder ? std::string(path) + "/data.mdb" : path;
  CFT_ASSIGN(std::shared_ptr<ByteFile> file, map_file(name));
  return LmdbTree::open(std::move(file), fmt::format("LMDB \"{}\"", name));
}

Result<std::optional<std::string>> given_key(const void* key, uint64_t bytes, const char* name) {
  if (!key && bytes == 0) return std::optional<std::string>();
  CFT_ASSIGN(const auto given, given_bytes(key, bytes, name));
  return std::optional<std::string>(text_of(given));
}

}  // namespace
}  // namespace cafetiere::capi

using cafetiere::Status;
namespace capi = cafetiere::capi;

int cft_lmdb_open(const char* path, const cft_file* file, cft_lmdb** out) {
  CFT_NOT_NULL(out);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(cafetiere::LmdbTree tree, capi::open_tree(path, file));
    *out = new cft_lmdb{std::move(tree)};
    return {};
  });
}

int cft_lmdb_records(const cft_lmdb* lmdb, int64_t* out) {
  CFT_NOT_NULL(lmdb, out);
  return capi::guarded([&] { *out = lmdb->tree.records; });
}

int cft_lmdb_has_ranges(const cft_lmdb* lmdb, int32_t* out) {
  CFT_NOT_NULL(lmdb, out);
  return capi::guarded([&] { *out = lmdb->tree.sorted; });
}

int cft_lmdb_split(const cft_lmdb* lmdb, int32_t ranges, void** keys, uint64_t* bytes) {
  CFT_NOT_NULL(lmdb, keys, bytes);
  return capi::guarded([&]() -> Status {
    if (ranges < 1 || ranges > 1 << 20) {
      return cafetiere::invalid_argument("ranges must be 1 to 1048576");
    }
    CFT_ASSIGN(const std::vector<std::string> cuts, lmdb->tree.split(ranges));
    std::string encoded;
    for (const std::string& key : cuts) {
      const auto size = uint32_t(key.size());
      encoded.append(reinterpret_cast<const char*>(&size), sizeof size).append(key);
    }
    return capi::give_bytes(encoded, keys, bytes);
  });
}

void cft_lmdb_close(cft_lmdb* lmdb) { delete lmdb; }

int cft_lmdb_cursor_create(const cft_lmdb* lmdb, const void* from, uint64_t from_bytes,
                           const void* to, uint64_t to_bytes, cft_lmdb_cursor** out) {
  CFT_NOT_NULL(lmdb, out);
  return capi::guarded([&]() -> Status {
    cafetiere::KeyRange range;
    CFT_ASSIGN(range.from, capi::given_key(from, from_bytes, "from"));
    CFT_ASSIGN(range.to, capi::given_key(to, to_bytes, "to"));
    *out = new cft_lmdb_cursor{cafetiere::LmdbCursor(lmdb->tree, std::move(range))};
    return {};
  });
}

int cft_lmdb_cursor_next(cft_lmdb_cursor* cursor, const void** key, uint64_t* key_bytes,
                         const void** value, uint64_t* value_bytes) {
  CFT_NOT_NULL(cursor, key, key_bytes);
  *key = nullptr, *key_bytes = 0;
  if (value) {
    CFT_NOT_NULL(value_bytes);
    *value = nullptr, *value_bytes = 0;
  }
  return capi::guarded([&]() -> Status {
    cafetiere::LmdbCursor& at = cursor->cursor;
    at.read_values(value != nullptr);
    CFT_TRY(std::exchange(cursor->begun, true) ? at.next() : at.first());
    if (!at.valid()) return {};
    *key = at.key().data(), *key_bytes = at.key().size();
    if (value) *value = at.value().data(), *value_bytes = at.value().size();
    return {};
  });
}

void cft_lmdb_cursor_destroy(cft_lmdb_cursor* cursor) { delete cursor; }

int cft_lmdb_create(const char* path, cft_lmdb_writer** out) {
  CFT_NOT_NULL(path, out);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(auto writer, cafetiere::create_db(path, cafetiere::DbBackend::kLmdb));
    *out = new cft_lmdb_writer{std::move(writer)};
    return {};
  });
}

int cft_lmdb_put(cft_lmdb_writer* writer, const void* key, uint64_t key_bytes, const void* value,
                 uint64_t value_bytes) {
  CFT_NOT_NULL(writer);
  return capi::guarded([&]() -> Status {
    if (key_bytes < 1 || key_bytes > capi::kLongestKey) {
      return cafetiere::invalid_argument(
          fmt::format("a key of an LMDB has 1 to {} bytes, not {}", capi::kLongestKey, key_bytes));
    }
    CFT_ASSIGN(const auto k, capi::given_bytes(key, key_bytes, "key"));
    CFT_ASSIGN(const auto v, capi::given_bytes(value, value_bytes, "value"));
    writer->writer->put(capi::text_of(k), capi::text_of(v));
    return {};
  });
}

int cft_lmdb_commit(cft_lmdb_writer* writer) {
  CFT_NOT_NULL(writer);
  return capi::guarded([&] { return writer->writer->commit(); });
}

void cft_lmdb_writer_close(cft_lmdb_writer* writer) { delete writer; }
