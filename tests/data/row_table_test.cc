// SPDX-License-Identifier: Apache-2.0
#include "core/data/row_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <regex>

#include "tests/data/rows.h"
#include "tests/support/temp_dir.h"

namespace cafetiere {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

RowSchema schema_of(std::string_view json) {
  auto schema = RowSchema::parse(json);
  EXPECT_TRUE(schema.ok()) << schema.status().message();
  return *schema;
}

/// The files that this process maps, and other memory.
std::string mappings() { return text_of_file("/proc/self/maps"); }

/// Memory of this process that is of no file, in bytes.
int64_t rss_anon() {
  const std::string status = text_of_file("/proc/self/status");
  return std::stoll(status.substr(status.find("RssAnon:") + 8)) * 1024;
}

constexpr std::string_view kWithId =
    R"({"columns": [{"name": "key", "type": "i64"}, {"name": "image", "type": "u8"},
                    {"name": "x", "type": "f32"}], "id": "key"})";
constexpr std::string_view kWithoutId =
    R"({"columns": [{"name": "image", "type": "u8"}, {"name": "x", "type": "f32"}], "id": ""})";

TEST(RowSchema, ReadsColumnsAndId) {
  const RowSchema schema = schema_of(kWithId);
  ASSERT_EQ(schema.columns.size(), 3u);
  EXPECT_EQ(schema.columns[2].name, "x");
  EXPECT_EQ(schema.columns[2].type, ColumnType::kF32);
  EXPECT_EQ(schema.id, 0);
  EXPECT_EQ(schema_of(kWithoutId).id, -1);
}

TEST(RowSchema, RefusesBadText) {
  const auto error = [](std::string_view text) {
    return RowSchema::parse(text).status().message();
  };
  EXPECT_THAT(error("{"), HasSubstr("not a JSON object"));
  EXPECT_THAT(error("[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(error(R"({"columns": []})"), HasSubstr("at least one column"));
  EXPECT_THAT(error(R"({"columns": [{"name": "a", "type": "u8"}], "ids": "a"})"),
              AllOf(HasSubstr("\"ids\""), HasSubstr("columns, id")));
  EXPECT_THAT(error(R"({"columns": [{"name": "a", "type": "float"}]})"),
              AllOf(HasSubstr("\"float\""), HasSubstr("f32")));
  EXPECT_THAT(error(R"({"columns": [{"name": "a", "type": "u8"}, {"name": "a", "type": "u8"}]})"),
              HasSubstr("two columns"));
  EXPECT_THAT(error(R"({"columns": [{"name": "a", "type": "u8"}], "id": "b"})"),
              AllOf(HasSubstr("\"b\""), HasSubstr("columns: a")));
  EXPECT_THAT(error(R"({"columns": [3]})"), HasSubstr("column 0"));
  EXPECT_THAT(error(R"({"columns": [{"name": "a", "type": "u8", "resize": 1}]})"),
              HasSubstr("not true or false"));
}

TEST(RowTable, WhatWasMovedFromIsEmptyAndTakesRows) {
  RowTable table(schema_of(R"({"columns": [{"name": "x", "type": "i32"}], "id": ""})"));
  RowBytes row;
  row.add<int32_t>(7);
  ASSERT_TRUE(table.append(1, row.span()).ok());
  const RowTable taken = std::move(table);
  EXPECT_EQ(taken.rows(), 1);
  EXPECT_EQ(table.rows(), 0);  // NOLINT(bugprone-use-after-move): what is tested
  EXPECT_FALSE(table.append(2, row.span()).ok());
  ASSERT_TRUE(table.append(1, row.span()).ok());
  EXPECT_EQ(table.rows(), 1);
}

TEST(RowTable, KeepsRowsAndViewsOfColumns) {
  RowTable table(schema_of(kWithId));
  RowBytes chunk;
  chunk.add(int64_t{7}).add_all<uint8_t>({1, 2, 3}).add(1.5f);
  chunk.add(int64_t{8}).add_all<uint8_t>({}).add_all<float>({2.f, 3.f});
  ASSERT_TRUE(table.append(2, chunk.span()).ok());
  ASSERT_TRUE(table.append(0, {}).ok());
  ASSERT_EQ(table.rows(), 2);
  EXPECT_EQ(table.cell(0, 0).describe(), "7");
  EXPECT_EQ(table.cell(0, 1).values(), 3);
  EXPECT_EQ(table.cell(1, 1).values(), 0);
  EXPECT_EQ(table.cell(1, 2).describe(), "[2, 3]");
  EXPECT_EQ(table.schema().describe_row(table.row(1)), "id 8");
  EXPECT_EQ(table.row(0).size() + table.row(1).size(), chunk.span().size());
}

TEST(RowCells, AreFoundInAnyOrder) {
  const RowSchema schema = schema_of(kWithId);
  RowBytes bytes;
  bytes.add_all(std::vector<int64_t>{7});
  bytes.add_all(std::vector<uint8_t>{1, 2, 3});
  bytes.add_all(std::vector<float>{4, 5});
  RowTable table(schema);
  ASSERT_TRUE(table.append(1, bytes.span()).ok());
  RowCells cells(schema, table.row(0));
  std::vector<int64_t> counts;
  for (const int column : {0, 2, 2, 1, 0, 1, 2}) counts.push_back(cells.cell(column).values());
  EXPECT_EQ(counts, (std::vector<int64_t>{1, 2, 2, 3, 1, 3, 2}));
}

TEST(RowTable, ALongTextIsShownUpToAWholeCharacter) {
  RowTable table(schema_of(R"({"columns": [{"name": "word", "type": "string"}]})"));
  const std::string letters(62, 'a');
  RowBytes chunk;
  chunk.text(letters + "\u00e9\u00e9").text(letters + "\u20ac\u20ac").text(letters + "\u00e9");
  ASSERT_TRUE(table.append(3, chunk.span()).ok());
  EXPECT_EQ(table.cell(0, 0).describe(), "\"" + letters + "\u00e9\"...");
  EXPECT_EQ(table.cell(1, 0).describe(), "\"" + letters + "\"...");
  EXPECT_EQ(table.cell(2, 0).describe(), "\"" + letters + "\u00e9\"");
}

TEST(RowTable, IdentityIsTheIdOrTheWholeRow) {
  RowTable with(schema_of(kWithId)), without(schema_of(kWithoutId));
  RowBytes a, b;
  a.add(int64_t{7}).add_all<uint8_t>({1}).add(1.f);
  a.add(int64_t{7}).add_all<uint8_t>({2}).add(1.f);
  a.add(int64_t{8}).add_all<uint8_t>({1}).add(1.f);
  ASSERT_TRUE(with.append(3, a.span()).ok());
  EXPECT_EQ(with.identity(0), with.identity(1));
  EXPECT_NE(with.identity(0), with.identity(2));
  b.add_all<uint8_t>({1}).add(1.f);
  b.add_all<uint8_t>({1}).add(1.f);
  b.add_all<uint8_t>({2}).add(1.f);
  ASSERT_TRUE(without.append(3, b.span()).ok());
  EXPECT_EQ(without.identity(0), without.identity(1));
  EXPECT_NE(without.identity(0), without.identity(2));
}

TEST(RowTable, RefusesBadChunksAndKeepsWhatItHad) {
  RowTable table(schema_of(kWithoutId));
  RowBytes good;
  good.add_all<uint8_t>({1, 2}).add(1.f);
  ASSERT_TRUE(table.append(1, good.span()).ok());
  const auto error = [&](int64_t count, std::span<const std::byte> chunk) {
    const Status status = table.append(count, chunk);
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(table.rows(), 1);
    return status.message();
  };
  // Every truncation of one row, wherever it falls.
  for (size_t n = 0; n < good.span().size(); ++n) error(1, good.span().first(n));
  EXPECT_THAT(error(1, good.span().first(9)), HasSubstr("row 0 of the chunk, column \"x\""));
  EXPECT_THAT(error(-1, good.span()), HasSubstr("-1 rows"));
  EXPECT_THAT(error(std::numeric_limits<int64_t>::max(), good.span()), HasSubstr("cannot hold"));
  EXPECT_THAT(error(0, good.span()), HasSubstr("14 bytes follow"));

  RowBytes huge;
  huge.add_all<uint8_t>({1, 2}).add(1.f);
  huge.add_size(0xFFFFFFFF).add(1.f);
  EXPECT_THAT(error(2, huge.span()),
              AllOf(HasSubstr("row 1 of the chunk, column \"image\""), HasSubstr("4294967295")));

  RowBytes odd;
  odd.add_all<uint8_t>({1, 2}).add_all<uint8_t>({1, 2, 3});
  EXPECT_THAT(error(1, odd.span()),
              AllOf(HasSubstr("\"x\""), HasSubstr("3 bytes"), HasSubstr("f32 values")));
}

TEST(RowTable, RowsStayWhereTheyAreWhenTheTableMovesAndGrows) {
  RowTable table(schema_of(kWithoutId));
  RowBytes chunk;
  chunk.add_all<uint8_t>(std::vector<uint8_t>(1 << 20, 9)).add(4.f);
  ASSERT_TRUE(table.append(1, chunk.span()).ok());
  const std::byte* first = table.row(0).data();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(table.append(1, chunk.span()).ok());
  RowTable moved = std::move(table);
  EXPECT_EQ(moved.row(0).data(), first);
  EXPECT_EQ(moved.identity(0), moved.identity(100));
  EXPECT_GT(moved.bytes(), 100u << 20);
}

constexpr size_t kMib = size_t{1} << 20;

/// `count` rows of about a MiB whose bytes depend on their numbers.
void append_large(RowTable& table, int count) {
  for (int i = 0; i < count; ++i) {
    std::vector<uint8_t> image(kMib - 100);
    for (size_t at = 0; at < image.size(); ++at) image[at] = static_cast<uint8_t>(at * 31 + i);
    RowBytes chunk;
    chunk.add_all(image).add(float(i));
    const Status status = table.append(1, chunk.span());
    ASSERT_TRUE(status.ok()) << status.message();
  }
}

bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::ranges::equal(a, b);
}

TEST(RowBudget, RowsBeyondItAreTheSameInFilesWithoutNames) {
  const TempDir folder;
  const auto budget = std::make_shared<RowBudget>(8 * kMib, folder.path(""));
  RowTable all(schema_of(kWithoutId)), within(schema_of(kWithoutId), budget);
  append_large(all, 40);
  const int64_t before = rss_anon();
  append_large(within, 40);
#if defined(__SANITIZE_ADDRESS__)
  constexpr int64_t also_kept = 80 * kMib;  // of what was freed
#elif defined(__SANITIZE_THREAD__)
  constexpr int64_t also_kept = 400 * kMib;  // what it knows of each byte
#else
  constexpr int64_t also_kept = 0;
#endif
  EXPECT_LT(rss_anon() - before, int64_t(16 * kMib) + also_kept);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path("")));
  EXPECT_THAT(mappings(), HasSubstr(folder.path("")));
  within.unmap_pages();
  for (int64_t i = 0; i < 40; ++i) {
    EXPECT_TRUE(same_bytes(all.row(i), within.row(i))) << i;
    EXPECT_EQ(all.identity(i), within.identity(i)) << i;
  }
  within.take_store();
  EXPECT_THAT(mappings(), Not(HasSubstr(folder.path(""))));
}

TEST(RowBudget, IsSharedByTablesAndComesBack) {
  const TempDir folder;
  const auto budget = std::make_shared<RowBudget>(8 * kMib, folder.path(""));
  RowTable first(schema_of(kWithoutId), budget), second(schema_of(kWithoutId), budget);
  append_large(first, 6);
  append_large(second, 4);
  EXPECT_FALSE(first.take_store().spilled());
  EXPECT_TRUE(second.take_store().spilled());
  append_large(first, 8);
  EXPECT_FALSE(first.take_store().spilled());
}

TEST(RowBudget, FreesWhatIsReadPieceByPiece) {
  const TempDir folder;
  const auto budget = std::make_shared<RowBudget>(0, folder.path(""));
  RowTable table(schema_of(kWithoutId), budget);
  append_large(table, 40);
  const auto count = [] {
    const std::string all = mappings();
    const std::regex file("cafetiere-rows-");
    return std::distance(std::sregex_iterator(all.begin(), all.end(), file), {});
  };
  const auto files = count();
  EXPECT_GT(files, 2);
  const std::vector<std::byte> last(table.row(39).begin(), table.row(39).end());
  table.release_before(39);
  EXPECT_LT(count(), files);
  EXPECT_TRUE(same_bytes(table.row(39), last));
}

// A limit on the size of files stands in for a full disk.
TEST(RowBudget, AFullDiskIsAnErrorAndKeepsTheRows) {
  const TempDir folder;
  RowTable table(schema_of(kWithoutId), std::make_shared<RowBudget>(3 * kMib, folder.path("")));
  append_large(table, 3);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit little{100'000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  RowBytes chunk;
  chunk.add_all(std::vector<uint8_t>(kMib)).add(1.f);
  const Status status = table.append(1, chunk.span());
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.code(), ErrorCode::kIo);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("rows have 3 MiB of memory"),
                                      HasSubstr(folder.path("")), HasSubstr("File too large")));
  EXPECT_EQ(table.rows(), 3);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path("")));
}

TEST(RowBudget, AFolderThatIsNotThereIsAnError) {
  RowTable table(schema_of(kWithoutId), std::make_shared<RowBudget>(0, "/no/such/folder"));
  RowBytes chunk;
  chunk.add<uint8_t>(1).add(1.f);
  EXPECT_THAT(table.append(1, chunk.span()).message(),
              AllOf(HasSubstr("/no/such/folder"), HasSubstr("No such file")));
}

}  // namespace
}  // namespace cafetiere
