// SPDX-License-Identifier: Apache-2.0
// The LMDB reader against liblmdb, and on files that are damaged or lie.
#include "core/data/lmdb_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lmdb.h>

#include <cstring>
#include <functional>
#include <random>

#include "core/model/file.h"
#include "tests/data/temp_dir.h"

namespace cafetiere {
namespace {

using testing::HasSubstr;

using Records = std::vector<std::pair<std::string, std::string>>;

/// The file that liblmdb writes in one transaction; `flags` are those of the main database.
std::string make_file(const std::function<void(MDB_txn* txn, MDB_dbi db)>& fill,
                      unsigned flags = 0) {
  const TempDir dir;
  MDB_env* env = nullptr;
  MDB_txn* txn = nullptr;
  MDB_dbi db;
  EXPECT_EQ(mdb_env_create(&env), 0);
  EXPECT_EQ(mdb_env_set_mapsize(env, 64 << 20), 0);
  EXPECT_EQ(mdb_env_set_maxdbs(env, 2), 0);
  EXPECT_EQ(mdb_env_open(env, dir.path("").c_str(), 0, 0600), 0);
  EXPECT_EQ(mdb_txn_begin(env, nullptr, 0, &txn), 0);
  EXPECT_EQ(mdb_dbi_open(txn, nullptr, flags, &db), 0);
  fill(txn, db);
  EXPECT_EQ(mdb_txn_commit(txn), 0);
  mdb_env_close(env);
  return *read_file(dir.path("data.mdb"));
}

void put(MDB_txn* txn, MDB_dbi db, const std::string& key, const std::string& value) {
  MDB_val k{key.size(), const_cast<char*>(key.data())};
  MDB_val v{value.size(), const_cast<char*>(value.data())};
  EXPECT_EQ(mdb_put(txn, db, &k, &v, 0), 0);
}

std::string file_of(const Records& records) {
  return make_file([&](MDB_txn* txn, MDB_dbi db) {
    for (const auto& [key, value] : records) put(txn, db, key, value);
  });
}

/// All records of a file, or the first error.
Status read_all(std::string_view file, Records* records) {
  CFT_ASSIGN(const LmdbTree tree, LmdbTree::open(file, "digits"));
  LmdbCursor cursor(tree);
  CFT_TRY(cursor.first());
  while (cursor.valid()) {
    records->emplace_back(cursor.key(), cursor.value());
    CFT_TRY(cursor.next());
  }
  return {};
}

std::string parse_error_of(std::string_view file) {
  Records records;
  return read_all(file, &records).message();
}

/// Keys in order, values from none to some pages.
Records some_records(int count) {
  std::mt19937 random(1);
  Records records;
  for (int i = 0; i < count; ++i) {
    const size_t size = i % 50 == 7 ? random() % 20'000 : random() % 300;
    records.emplace_back("key" + std::to_string(1'000'000 + i),
                         std::string(size, static_cast<char>(i)));
  }
  return records;
}

TEST(LmdbTree, ReadsWhatTheLibraryWrote) {
  for (const int count : {0, 1, 10, 20'000}) {
    const Records written = some_records(count);
    const std::string file = file_of(written);
    Records read;
    const Status status = read_all(file, &read);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(LmdbTree::open(file, "digits")->records, count);
    EXPECT_TRUE(read == written) << count;
  }
}

TEST(LmdbTree, ReadsWhatWasLeftAfterDeletions) {
  Records written = some_records(3000);
  const std::string file = make_file([&](MDB_txn* txn, MDB_dbi db) {
    for (const auto& [key, value] : written) put(txn, db, key, value);
    std::erase_if(written, [&](const auto& record) {
      if (record.first.back() == '3') return false;
      MDB_val key{record.first.size(), const_cast<char*>(record.first.data())};
      EXPECT_EQ(mdb_del(txn, db, &key, nullptr), 0);
      return true;
    });
  });
  Records read;
  ASSERT_TRUE(read_all(file, &read).ok());
  EXPECT_TRUE(read == written);
}

TEST(LmdbTree, SaysWhatItDoesNotRead) {
  EXPECT_THAT(parse_error_of(""), HasSubstr("digits: is not an LMDB file"));
  EXPECT_THAT(parse_error_of("not a database"), HasSubstr("is not an LMDB file"));
  EXPECT_THAT(parse_error_of(
                  make_file([](MDB_txn* txn, MDB_dbi db) { put(txn, db, "a", "b"); }, MDB_DUPSORT)),
              HasSubstr("MDB_DUPSORT"));
  EXPECT_THAT(parse_error_of(make_file([](MDB_txn* txn, MDB_dbi) {
                MDB_dbi other;
                EXPECT_EQ(mdb_dbi_open(txn, "other", MDB_CREATE, &other), 0);
              })),
              HasSubstr("a database in place of a value"));
}

/// The file with a number written over it.
template <class T>
std::string patched(std::string file, size_t at, T number) {
  std::memcpy(file.data() + at, &number, sizeof number);
  return file;
}

TEST(LmdbTree, HeadersThatLieAreRefused) {
  // After the first transaction the second header counts.
  const std::string file = file_of(some_records(3000));
  const size_t header = 4096;
  EXPECT_EQ(parse_error_of(file), "");
  EXPECT_THAT(parse_error_of(patched<uint32_t>(file, 40, 3000)), HasSubstr("damaged header"));
  EXPECT_THAT(parse_error_of(patched<uint32_t>(file, 40, 1 << 31)), HasSubstr("damaged header"));
  EXPECT_THAT(parse_error_of(patched<uint16_t>(file, header + 94, 33)),
              HasSubstr("damaged header"));
  EXPECT_THAT(parse_error_of(patched<uint16_t>(file, header + 94, 1)),
              HasSubstr("not what it should"));
  EXPECT_THAT(parse_error_of(patched(file, header + 120, ~uint64_t{0})),
              HasSubstr("damaged header"));
  EXPECT_THAT(parse_error_of(patched<uint64_t>(file, header + 120, 5)),
              HasSubstr("more records than"));
  EXPECT_THAT(parse_error_of(patched<uint64_t>(file, header + 128, 1 << 30)),
              HasSubstr("lies outside"));
  EXPECT_THAT(parse_error_of(patched<uint64_t>(file, header + 128, 0)),
              HasSubstr("not what it should"));
}

TEST(LmdbTree, FilesThatWereCutOffAreRefused) {
  const std::string file = file_of(some_records(300));
  for (size_t size = 0; size < file.size() - 4096; size += 512) {
    EXPECT_NE(parse_error_of(std::string_view(file).substr(0, size)), "") << size;
  }
}

TEST(LmdbTree, ComesBackWhateverByteIsWrong) {
  const std::string file = file_of({{"a", "1"}, {"b", std::string(5000, 'x')}, {"c", ""}});
  for (size_t at = 0; at < file.size(); ++at) {
    for (const uint8_t byte : {0x00, 0x01, 0x80, 0xff}) {
      Records records;
      const Status status = read_all(patched(file, at, byte), &records);
      EXPECT_TRUE(records.size() <= 3 || !status.ok()) << at;
    }
  }
}

}  // namespace
}  // namespace cafetiere
