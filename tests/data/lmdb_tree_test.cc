// SPDX-License-Identifier: Apache-2.0
// The LMDB reader against liblmdb, and on files that are damaged or lie.
#include "core/data/lmdb_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/data/lmdb_cursor.h"
#include "tests/data/lmdb_file.h"

namespace cafetiere {
namespace {

using testing::HasSubstr;

/// All records of a file, or the first error.
Status read_all(std::string_view file, Records* records) {
  CFT_ASSIGN(const LmdbTree tree, LmdbTree::open(std::make_shared<MemoryFile>(file), "digits"));
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

TEST(LmdbTree, ReadsWhatTheLibraryWrote) {
  for (const int count : {0, 1, 10, 20'000}) {
    const Records written = some_records(count);
    const std::string file = file_of(written);
    Records read;
    const Status status = read_all(file, &read);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(LmdbTree::open(std::make_shared<MemoryFile>(file), "digits")->records, count);
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
              HasSubstr("a database instead of a value"));
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
