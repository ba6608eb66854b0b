// SPDX-License-Identifier: Apache-2.0
// LevelDBs of this machine.
#include "core/capi/boundary.h"
#include "core/capi/db_handles.h"

struct cft_leveldb {
  std::unique_ptr<cafetiere::DbReader> reader;
  std::unique_ptr<cafetiere::DbCursor> cursor;  // after reader: it goes first
  bool begun = false;
};

using cafetiere::Status;
namespace capi = cafetiere::capi;

int cft_leveldb_open(const char* path, cft_leveldb** out) {
  CFT_NOT_NULL(path, out);
  return capi::guarded([&]() -> Status {
    auto opened = std::make_unique<cft_leveldb>();
    CFT_ASSIGN(opened->reader, cafetiere::open_leveldb(path, /*counted=*/false));
    CFT_ASSIGN(opened->cursor, opened->reader->cursor());
    *out = opened.release();
    return {};
  });
}

int cft_leveldb_next(cft_leveldb* leveldb, const void** key, uint64_t* key_bytes,
                     const void** value, uint64_t* value_bytes) {
  CFT_NOT_NULL(leveldb, key, key_bytes, value, value_bytes);
  *key = *value = nullptr, *key_bytes = *value_bytes = 0;
  return capi::guarded([&]() -> Status {
    cafetiere::DbCursor& at = *leveldb->cursor;
    if (leveldb->begun && !at.valid()) return {};
    CFT_TRY(std::exchange(leveldb->begun, true) ? at.next() : at.first());
    if (!at.valid()) return {};
    *key = at.key().data(), *key_bytes = at.key().size();
    *value = at.value().data(), *value_bytes = at.value().size();
    return {};
  });
}

void cft_leveldb_close(cft_leveldb* leveldb) { delete leveldb; }

int cft_leveldb_create(const char* path, cft_lmdb_writer** out) {
  CFT_NOT_NULL(path, out);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(auto writer, cafetiere::create_db(path, cafetiere::DbBackend::kLevelDb));
    *out = new cft_lmdb_writer{std::move(writer)};
    return {};
  });
}
