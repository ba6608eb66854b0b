// SPDX-License-Identifier: Apache-2.0
// Ranges of keys of an LMDB file, and how many bytes of it they read.
#include <gmock/gmock.h>

#include "core/data/lmdb_cursor.h"
#include "tests/data/lmdb_file.h"

namespace cafetiere {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// A file that counts the bytes that are read of it, and does not give those behind `end`.
class CountedFile : public ByteFile {
 public:
  explicit CountedFile(std::string bytes) : bytes_(std::move(bytes)), end(bytes_.size()) {}
  uint64_t size() const override { return bytes_.size(); }
  Result<std::string_view> read(uint64_t offset, uint64_t bytes,
                                std::string* buffer) const override {
    if (offset + bytes > end) return io_error("gone");
    read_bytes += bytes;
    *buffer = bytes_.substr(offset, bytes);
    return std::string_view(*buffer);
  }

 private:
  std::string bytes_;

 public:
  uint64_t end;
  mutable uint64_t read_bytes = 0;
};

Records read_range(const LmdbTree& tree, const KeyRange& range) {
  Records records;
  LmdbCursor cursor(tree, range);
  Status status = cursor.first();
  for (; status.ok() && cursor.valid(); status = cursor.next()) {
    records.emplace_back(cursor.key(), cursor.value());
  }
  EXPECT_TRUE(status.ok()) << status.message();
  return records;
}

KeyRange range_of(const std::vector<std::string>& cuts, size_t i) {
  KeyRange range;
  if (i > 0) range.from = cuts[i - 1];
  if (i < cuts.size()) range.to = cuts[i];
  return range;
}

Records images(int count, size_t bytes) {
  Records records;
  for (int i = 0; i < count; ++i) {
    records.emplace_back("key" + std::to_string(1'000'000 + i), std::string(bytes, char(i)));
  }
  return records;
}

TEST(LmdbRange, RangesReadTheirShareOfTheFile) {
  // Values within leaves; with pages of their own; and both.
  for (const Records& written :
       {images(20'000, 300), images(1'000, 12'000), some_records(20'000)}) {
    const auto file = std::make_shared<CountedFile>(file_of(written));
    for (const int ranges : {1, 3, 8}) {
      file->read_bytes = 0;
      const auto tree = LmdbTree::open(file, "digits");
      ASSERT_TRUE(tree.ok()) << tree.status().message();
      const auto cuts = tree->split(ranges);
      ASSERT_TRUE(cuts.ok()) << cuts.status().message();
      ASSERT_EQ(std::ssize(*cuts), ranges - 1);
      EXPECT_LE(file->read_bytes, file->size() / 40) << "to split";
      Records read;
      for (size_t i = 0; i <= cuts->size(); ++i) {
        file->read_bytes = 0;
        const Records part = read_range(*LmdbTree::open(file, "digits"), range_of(*cuts, i));
        read.insert(read.end(), part.begin(), part.end());
        EXPECT_LE(double(file->read_bytes), 1.05 * double(file->size()) / ranges) << i;
      }
      EXPECT_TRUE(read == written);
    }
  }
}

TEST(LmdbRange, AnyTwoKeysAreARange) {
  const Records written = some_records(500);
  const auto file = std::make_shared<CountedFile>(file_of(written));
  const auto tree = LmdbTree::open(file, "digits");
  ASSERT_TRUE(tree.ok());
  for (size_t i = 0; i < written.size(); i += 7) {
    for (const size_t j : {i, i + 1, written.size() - 1}) {
      if (j >= written.size()) continue;
      const Records expected(written.begin() + long(i), written.begin() + long(j));
      EXPECT_TRUE(read_range(*tree, {written[i].first, written[j].first}) == expected) << i;
    }
    // Between two keys.
    EXPECT_THAT(read_range(*tree, {written[i].first + "a", written[i].first + "b"}), IsEmpty());
  }
  EXPECT_EQ(read_range(*tree, {{}, "key1000010"}).size(), 10U);
  EXPECT_EQ(read_range(*tree, {"", {}}).size(), 500U);
  EXPECT_THAT(read_range(*tree, {"z", {}}), IsEmpty());
  EXPECT_THAT(read_range(*tree, {"key2", "key1"}), IsEmpty());
}

TEST(LmdbRange, MoreRangesThanRecordsAreFewer) {
  for (const int count : {0, 1, 3}) {
    const auto tree =
        LmdbTree::open(std::make_shared<CountedFile>(file_of(images(count, 5'000))), "digits");
    const auto cuts = tree->split(10);
    ASSERT_TRUE(cuts.ok()) << cuts.status().message();
    EXPECT_EQ(std::ssize(*cuts), std::max(0, count - 1));
  }
}

TEST(LmdbRange, AnErrorOfTheFileIsTheCursors) {
  const auto file = std::make_shared<CountedFile>(file_of(images(100, 5'000)));
  const auto tree = LmdbTree::open(file, "digits");
  ASSERT_TRUE(tree.ok());
  file->end = file->size() / 2;
  LmdbCursor cursor(*tree);
  Status status = cursor.first();
  while (status.ok() && cursor.valid()) status = cursor.next();
  EXPECT_EQ(status.message(), "gone");
  file->end = 0;
  EXPECT_EQ(tree->split(2).status().message(), "gone");
  EXPECT_EQ(LmdbTree::open(file, "digits").status().message(), "gone");
}

TEST(LmdbRange, AnotherOrderHasNoRanges) {
  const std::string file =
      make_file([](MDB_txn* txn, MDB_dbi db) { put(txn, db, "ab", "1"), put(txn, db, "ba", "2"); },
                MDB_REVERSEKEY);
  const auto tree = LmdbTree::open(std::make_shared<MemoryFile>(file), "digits");
  ASSERT_TRUE(tree.ok());
  EXPECT_EQ(read_range(*tree, {}).size(), 2U);
  LmdbCursor cursor(*tree, {"a", {}});
  EXPECT_THAT(cursor.first().message(), HasSubstr("MDB_REVERSEKEY"));
  EXPECT_THAT(tree->split(2).status().message(), HasSubstr("digits: its keys"));
}

TEST(LmdbRange, ComesBackWhateverByteIsWrong) {
  std::string file = file_of(images(3, 1'500));
  for (size_t at = 0; at < file.size(); ++at) {
    const char was = file[at];
    for (const int byte : {0x00, 0x01, 0x80, 0xff}) {
      file[at] = char(byte);
      const auto tree = LmdbTree::open(std::make_shared<MemoryFile>(file), "digits");
      if (!tree.ok()) continue;
      const auto cuts = tree->split(4);
      EXPECT_TRUE(!cuts.ok() || cuts->size() <= 3) << at;
      LmdbCursor cursor(*tree, {"key1000001", "key1000002"});
      int records = 0;
      for (Status s = cursor.first(); s.ok() && cursor.valid(); s = cursor.next()) ++records;
      EXPECT_LE(records, 4) << at;
    }
    file[at] = was;
  }
}

}  // namespace
}  // namespace cafetiere
