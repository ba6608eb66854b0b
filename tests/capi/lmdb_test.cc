// SPDX-License-Identifier: Apache-2.0
// LMDB through the C interface: from a path, and from a file that the caller reads.
#include <gmock/gmock.h>

#include <cstring>

#include "cafetiere/c_api.h"
#include "tests/data/lmdb_file.h"

namespace cafetiere {
namespace {

using testing::HasSubstr;

struct Close {
  void operator()(cft_lmdb* lmdb) const { cft_lmdb_close(lmdb); }
  void operator()(cft_lmdb_cursor* cursor) const { cft_lmdb_cursor_destroy(cursor); }
};
using Lmdb = std::unique_ptr<cft_lmdb, Close>;
using Cursor = std::unique_ptr<cft_lmdb_cursor, Close>;

/// Bytes that a caller gives, until it fails.
struct Bytes {
  std::string all;
  int reads_left = 1 << 30;

  cft_file file() {
    return {sizeof(cft_file), this, all.size(),
            [](void* context, uint64_t offset, void* out, uint64_t bytes) -> int {
              auto* self = static_cast<Bytes*>(context);
              if (self->reads_left-- <= 0) return 1;
              EXPECT_LE(offset + bytes, self->all.size());
              std::memcpy(out, self->all.data() + offset, bytes);
              return 0;
            },
            nullptr};
  }
};

Lmdb open(const char* path, const cft_file* file) {
  cft_lmdb* lmdb = nullptr;
  EXPECT_EQ(cft_lmdb_open(path, file, &lmdb), CFT_OK) << cft_last_error();
  return Lmdb(lmdb);
}

Cursor cursor_of(const Lmdb& lmdb, const std::string* from, const std::string* to) {
  cft_lmdb_cursor* cursor = nullptr;
  EXPECT_EQ(
      cft_lmdb_cursor_create(lmdb.get(), from ? from->data() : nullptr, from ? from->size() : 0,
                             to ? to->data() : nullptr, to ? to->size() : 0, &cursor),
      CFT_OK)
      << cft_last_error();
  return Cursor(cursor);
}

/// Goes on to the end, or to an error, whose code it gives.
int read(const Cursor& cursor, Records* records) {
  while (true) {
    const void *key = nullptr, *value = nullptr;
    uint64_t key_bytes = 0, value_bytes = 0;
    const int code = cft_lmdb_cursor_next(cursor.get(), &key, &key_bytes, &value, &value_bytes);
    if (code != CFT_OK || !key) return code;
    records->emplace_back(std::string(static_cast<const char*>(key), key_bytes),
                          std::string(static_cast<const char*>(value), value_bytes));
  }
}

std::vector<std::string> split(const Lmdb& lmdb, int ranges) {
  void* bytes = nullptr;
  uint64_t size = 0;
  EXPECT_EQ(cft_lmdb_split(lmdb.get(), ranges, &bytes, &size), CFT_OK) << cft_last_error();
  std::vector<std::string> keys;
  for (uint64_t at = 0; at < size;) {
    uint32_t length = 0;
    std::memcpy(&length, static_cast<const char*>(bytes) + at, sizeof length);
    keys.emplace_back(static_cast<const char*>(bytes) + at + sizeof length, length);
    at += sizeof length + length;
  }
  cft_free(bytes);
  return keys;
}

TEST(LmdbInterface, RangesOfACallersFileAreItsRecords) {
  const Records written = some_records(5'000);
  Bytes bytes{file_of(written)};
  const cft_file file = bytes.file();
  Lmdb lmdb = open(nullptr, &file);
  int64_t count = 0;
  EXPECT_EQ(cft_lmdb_records(lmdb.get(), &count), CFT_OK);
  EXPECT_EQ(count, 5'000);
  const std::vector<std::string> keys = split(lmdb, 3);
  ASSERT_EQ(keys.size(), 2U);
  const Cursor cursors[] = {cursor_of(lmdb, nullptr, &keys[0]), cursor_of(lmdb, &keys[0], &keys[1]),
                            cursor_of(lmdb, &keys[1], nullptr)};
  lmdb.reset();  // cursors keep what they read
  Records records;
  for (const Cursor& cursor : cursors)
    EXPECT_EQ(read(cursor, &records), CFT_OK) << cft_last_error();
  EXPECT_TRUE(records == written);
  EXPECT_EQ(read(cursors[0], &records), CFT_OK) << "the end stays the end";
  EXPECT_EQ(records.size(), 5'000U);
}

TEST(LmdbInterface, AFolderIsADatabase) {
  const TempDir dir;
  const Records written = some_records(10);
  dir.write("data.mdb", file_of(written));
  for (const std::string& path : {dir.path(""), dir.path("data.mdb")}) {
    Records records;
    EXPECT_EQ(read(cursor_of(open(path.c_str(), nullptr), nullptr, nullptr), &records), CFT_OK);
    EXPECT_TRUE(records == written);
  }
}

TEST(LevelDbInterface, ReadsWhatItWrote) {
  const TempDir dir;
  const Records written = some_records(300);
  cft_lmdb_writer* writer = nullptr;
  ASSERT_EQ(cft_leveldb_create(dir.path("db").c_str(), &writer), CFT_OK) << cft_last_error();
  for (const auto& [key, value] : written) {
    EXPECT_EQ(cft_lmdb_put(writer, key.data(), key.size(), value.data(), value.size()), CFT_OK);
  }
  EXPECT_EQ(cft_lmdb_commit(writer), CFT_OK) << cft_last_error();
  cft_lmdb_writer_close(writer);
  cft_leveldb* leveldb = nullptr;
  ASSERT_EQ(cft_leveldb_open(dir.path("db").c_str(), &leveldb), CFT_OK) << cft_last_error();
  Records records;
  for (int after_end = 0; after_end < 2;) {
    const void *key = nullptr, *value = nullptr;
    uint64_t key_bytes = 0, value_bytes = 0;
    ASSERT_EQ(cft_leveldb_next(leveldb, &key, &key_bytes, &value, &value_bytes), CFT_OK);
    if (!key) {
      ++after_end;  // the end stays the end
      continue;
    }
    records.emplace_back(std::string(static_cast<const char*>(key), key_bytes),
                         std::string(static_cast<const char*>(value), value_bytes));
  }
  cft_leveldb_close(leveldb);
  EXPECT_TRUE(records == written);
}

TEST(LmdbInterface, WhatTheCallerCannotReadIsAnError) {
  Bytes bytes{file_of(some_records(5'000))};
  const cft_file file = bytes.file();
  const Cursor cursor = cursor_of(open(nullptr, &file), nullptr, nullptr);
  bytes.reads_left = 10;
  Records records;
  EXPECT_EQ(read(cursor, &records), CFT_IO);
  EXPECT_THAT(cft_last_error(), HasSubstr("the caller could not read 4096 bytes at"));
  EXPECT_GT(records.size(), 50U);
  cft_lmdb* lmdb = nullptr;
  EXPECT_EQ(cft_lmdb_open(nullptr, &file, &lmdb), CFT_IO);
}

TEST(LmdbInterface, ErrorsHaveTheFilesName) {
  Bytes bytes{"not a database"};
  cft_file file = bytes.file();
  file.name = "hdfs://host/digits/data.mdb";
  cft_lmdb* lmdb = nullptr;
  EXPECT_EQ(cft_lmdb_open(nullptr, &file, &lmdb), CFT_INVALID_ARGUMENT);
  EXPECT_THAT(cft_last_error(), HasSubstr("LMDB \"hdfs://host/digits/data.mdb\": is not an"));
}

TEST(LmdbInterface, KeysAloneReadNoPagesOfValues) {
  Records written;
  for (int i = 0; i < 100; ++i) {
    written.emplace_back("key" + std::to_string(100 + i), std::string(40'000, 'v'));
  }
  Bytes bytes{file_of(written)};
  const cft_file file = bytes.file();
  const Cursor cursor = cursor_of(open(nullptr, &file), nullptr, nullptr);
  bytes.reads_left = 10;  // some pages, and no hundred of values
  const void* key = "";
  uint64_t key_bytes = 0;
  for (const auto& record : written) {
    ASSERT_EQ(cft_lmdb_cursor_next(cursor.get(), &key, &key_bytes, nullptr, nullptr), CFT_OK);
    EXPECT_EQ(std::string(static_cast<const char*>(key), key_bytes), record.first);
  }
}

TEST(LmdbInterface, TellsWhetherThereAreRanges) {
  for (const unsigned flags : {0U, unsigned{MDB_REVERSEKEY}, unsigned{MDB_INTEGERKEY}}) {
    Bytes bytes{make_file([](MDB_txn* txn, MDB_dbi db) { put(txn, db, "4444", "1"); }, flags)};
    const cft_file file = bytes.file();
    int32_t ranges = -1;
    EXPECT_EQ(cft_lmdb_has_ranges(open(nullptr, &file).get(), &ranges), CFT_OK);
    EXPECT_EQ(ranges, flags == 0) << flags;
  }
}

TEST(LmdbInterface, WritesWhatItReads) {
  const TempDir dir;
  const std::string path = dir.path("new");
  const auto add = [](cft_lmdb_writer* writer, const std::string& key, const std::string& value) {
    return cft_lmdb_put(writer, key.data(), key.size(), value.data(), value.size());
  };
  const Records records = some_records(3'000);
  cft_lmdb_writer* writer = nullptr;
  ASSERT_EQ(cft_lmdb_create(path.c_str(), &writer), CFT_OK) << cft_last_error();
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(add(writer, records[i].first, records[i].second), CFT_OK);
    if (i % 1'000 == 999) {
      EXPECT_EQ(cft_lmdb_commit(writer), CFT_OK) << cft_last_error();
    }
  }
  EXPECT_EQ(add(writer, "", "x"), CFT_INVALID_ARGUMENT);
  EXPECT_EQ(add(writer, std::string(512, 'k'), "x"), CFT_INVALID_ARGUMENT);
  EXPECT_STREQ(cft_last_error(), "a key of an LMDB has 1 to 511 bytes, not 512");
  EXPECT_EQ(add(writer, "zz", "lost"), CFT_OK);
  cft_lmdb_writer_close(writer);
  Records read_again;
  EXPECT_EQ(read(cursor_of(open(path.c_str(), nullptr), nullptr, nullptr), &read_again), CFT_OK);
  EXPECT_TRUE(read_again == records);
  EXPECT_EQ(cft_lmdb_create(path.c_str(), &writer), CFT_IO);
  EXPECT_THAT(cft_last_error(), HasSubstr("mkdir"));
}

TEST(LmdbInterface, APathOrAFile) {
  Bytes bytes{"not a database"};
  cft_file file = bytes.file();
  cft_lmdb* lmdb = nullptr;
  EXPECT_EQ(cft_lmdb_open(nullptr, nullptr, &lmdb), CFT_INVALID_ARGUMENT);
  EXPECT_EQ(cft_lmdb_open("x", &file, &lmdb), CFT_INVALID_ARGUMENT);
  EXPECT_THAT(cft_last_error(), HasSubstr("a path or a file"));
  EXPECT_EQ(cft_lmdb_open(nullptr, &file, &lmdb), CFT_INVALID_ARGUMENT);
  EXPECT_THAT(cft_last_error(), HasSubstr("is not an LMDB file"));
  file.read = nullptr;
  EXPECT_EQ(cft_lmdb_open(nullptr, &file, &lmdb), CFT_INVALID_ARGUMENT);
  EXPECT_STREQ(cft_last_error(), "cft_file.read is NULL");
}

}  // namespace
}  // namespace cafetiere
