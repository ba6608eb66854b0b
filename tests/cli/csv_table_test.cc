// SPDX-License-Identifier: Apache-2.0
// Tables in CSV: how they are split into cells, what is found of their columns, which rows are held back.
#include "cli/csv_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

#include "cli/csv.h"
#include "cli/fit_rows.h"
#include "cli/fit_task.h"
#include "cli/table_cells.h"
#include "core/data/table_values.h"

namespace cafetiere {
namespace {

using Records = std::vector<std::vector<std::string>>;

/// All records of a text, or the error in place of the next one.
Records records(const std::string& text) {
  std::istringstream in(text);
  CsvReader csv(in);
  Records all;
  std::vector<std::string> cells;
  while (true) {
    const Result<bool> more = csv.next(&cells);
    if (!more.ok()) cells = {more.status().message()};
    if (!more.ok() || *more) all.push_back(cells);
    if (!more.ok() || !*more) return all;
  }
}

TEST(Csv, SplitsRecordsWhateverEndsTheirLines) {
  const Records expected{{"a", "b"}, {"1", ""}, {"", "2"}};
  EXPECT_EQ(records("a,b\n1,\n,2\n"), expected);
  EXPECT_EQ(records("a,b\r\n1,\r\n,2"), expected);
  EXPECT_EQ(records("a,b\r1,\r,2\r"), expected);
  EXPECT_EQ(records("\xEF\xBB\xBF\n\n\"a\",b\n\n1,\n\r\n,2\n\n"), expected);  // empty lines
}

TEST(Csv, QuotesHoldCommasQuotesAndEndsOfLines) {
  EXPECT_EQ(records("\"a, \"\"b\"\"\r\nc\",d\"e\n"), (Records{{"a, \"b\"\r\nc", "d\"e"}}));
  EXPECT_EQ(records("\"\"\n"), (Records{{""}}));
  EXPECT_EQ(records("\xEF\xBC\x91,b\n"), (Records{{"\xEF\xBC\x91", "b"}}));  // almost a mark
}

TEST(Csv, ErrorsNameTheLine) {
  EXPECT_EQ(records("a\n\n\"b\nc").back().front(), "line 3: a quote is not closed");
  EXPECT_TRUE(records("a\n\"b\"c\n").back().front().starts_with("line 2: text behind the quote"));
  EXPECT_EQ(records("a\n\xE9\n").back().front(), "line 2: a cell is not UTF-8");
}

TEST(Csv, NumbersAreThoseOfPython) {
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(number_of(" -2.5e3\t"), -2500);
  EXPECT_EQ(number_of("+.5"), 0.5);
  EXPECT_EQ(number_of("007"), 7);
  EXPECT_EQ(number_of("1e400"), infinite);
  EXPECT_EQ(number_of("-1e400"), -infinite);
  EXPECT_EQ(number_of("1e-400"), 0);
  EXPECT_EQ(number_of("-Infinity"), -infinite);
  EXPECT_TRUE(std::isnan(number_of("NaN").value()));
  for (const char* text : {"", " ", "1_000", "0x10", "nan(1)", "+-1", "1,5", "1 2", "--1"}) {
    EXPECT_FALSE(number_of(text)) << text;
  }
}

TEST(Csv, TypesAreTheFirstThatAllCellsHave) {
  EXPECT_EQ(found_type({"1", "", "2.5"}), ColumnType::kF64);
  EXPECT_EQ(found_type({"", ""}), ColumnType::kF64);
  EXPECT_EQ(found_type({"2026-07-01", ""}), ColumnType::kI32);
  EXPECT_EQ(found_type({"2026-07-01", "2026-07-01T12:30:00.5-01:30"}), ColumnType::kI64);
  EXPECT_EQ(found_type({"2026-07-01", "1"}), ColumnType::kString);
  EXPECT_EQ(found_type({"2026-07-01T12:30:00+01:00:30"}), ColumnType::kString);
  EXPECT_EQ(found_type({"2026-02-30"}), ColumnType::kString);
}

TEST(Csv, MomentsReachBeyondTheYear2038) {
  std::vector<std::byte> cell;
  ASSERT_TRUE(append_cell(ColumnType::kI64, "9999-12-31T23:59:59", &cell).ok());
  int64_t micros = 0;
  ASSERT_EQ(cell.size(), sizeof(uint32_t) + sizeof micros);
  std::memcpy(&micros, cell.data() + sizeof(uint32_t), sizeof micros);
  EXPECT_EQ(micros, 253'402'300'799'000'000);
}

TEST(Csv, FewWholeNumbersNameClasses) {
  CsvTable::Cells many;
  for (int i = 0; i < 20; ++i) many.push_back(std::to_string(i));
  many.insert(many.end(), {"1.0", "-0", ""});
  EXPECT_TRUE(are_classes(many));
  many.emplace_back("20");
  EXPECT_FALSE(are_classes(many));
  EXPECT_FALSE(are_classes({"1", "1.5"}));
  EXPECT_FALSE(are_classes({"1", "inf"}));
  EXPECT_TRUE(are_classes({"1", "yes"}));
  EXPECT_TRUE(are_classes({"2026-07-01"}));
}

/// A task that learns the last column of a table from the others.
FitTask last_of(const CsvTable& table, bool classes) {
  FitTask task;
  task.features = table.names.size() - 1;
  task.classes = classes;
  for (const std::string& name : table.names) task.columns.push_back({name, ColumnType::kF64});
  return task;
}

TEST(Fit, EqualRowsAreHeldOutTogether) {
  CsvTable table{"t.csv", {"a"}, {{}}};
  for (int i = 0; i < 1000; ++i) table.cells[0].push_back(std::to_string(i / 2));
  const FitTask task = last_of(table, false);
  FitFlags flags;
  flags.validation = 0.25;
  const Result<SplitRows> split = split_rows(table, task, flags);
  ASSERT_TRUE(split.ok());
  EXPECT_EQ(split->train.count + split->held_out.count, 1000);
  EXPECT_EQ(split->held_out.count % 2, 0);
  EXPECT_NEAR(double(split->held_out.count), 250, 60);
  ASSERT_EQ(int64_t(split->held_out_places.size()), split->held_out.count);
  for (size_t i = 0; i < split->held_out_places.size(); i += 2) {
    EXPECT_EQ(split->held_out_places[i] + 1, split->held_out_places[i + 1]);
  }
  table.cells[0].resize(2);
  flags.validation = 1e-9;
  EXPECT_FALSE(split_rows(table, task, flags).ok());
}

/// A table of different rows, of two classes.
CsvTable numbered(int rows) {
  CsvTable table{"t.csv", {"a", "y"}, {{}, {}}};
  for (int i = 0; i < rows; ++i) {
    table.cells[0].push_back(std::to_string(i));
    table.cells[1].push_back(std::to_string(i % 2));
  }
  return table;
}

TEST(Fit, WithoutFlagsFewRowsAreTrainedOnWholeAndMoreToTheEnd) {
  struct Case {
    int rows;
    bool holds_back;
    int64_t patience;
  };
  for (const Case& c :
       {Case{99, false, 0}, Case{100, true, 0}, Case{1499, true, 0}, Case{1500, true, 10}}) {
    const CsvTable table = numbered(c.rows);
    const Result<SplitRows> split = split_rows(table, last_of(table, true), FitFlags());
    ASSERT_TRUE(split.ok()) << c.rows;
    EXPECT_EQ(split->held_out.count > 0, c.holds_back) << c.rows;
    EXPECT_EQ(patience_of(FitFlags(), *split), c.patience) << c.rows;
  }
  FitFlags flags;
  flags.patience = 3;  // which needs rows to test on
  const CsvTable table = numbered(99);
  const Result<SplitRows> split = split_rows(table, last_of(table, true), flags);
  ASSERT_TRUE(split.ok());
  EXPECT_GT(split->held_out.count, 0);
  EXPECT_EQ(patience_of(flags, *split), 3);
}

TEST(Fit, AClassIsNotHeldBackAsAWhole) {
  CsvTable table = numbered(400);
  for (int i = 0; i < 400; ++i) table.cells[1][size_t(i)] = std::to_string(i);
  const FitTask classes = last_of(table, true), numbers = last_of(table, false);
  EXPECT_EQ(split_rows(table, classes, FitFlags())->held_out.count, 0);
  EXPECT_GT(split_rows(table, numbers, FitFlags())->held_out.count, 0);
  FitFlags flags;
  flags.validation = 0.1;
  EXPECT_FALSE(split_rows(table, classes, flags).ok());
}

}  // namespace
}  // namespace cafetiere
