// SPDX-License-Identifier: Apache-2.0
#include "core/data/table_encoder.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "core/data/table_statistics.h"
#include "tests/data/rows.h"

namespace cafetiere {
namespace {

using TableColumn = caffe::TableDataParameter::Column;
using testing::AllOf;
using testing::ElementsAre;
using testing::FloatEq;
using testing::FloatNear;
using testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

RowSchema schema() {
  return *RowSchema::parse(
      R"({"columns": [{"name": "id", "type": "i64"}, {"name": "age", "type": "f64"},
                      {"name": "city", "type": "string"}, {"name": "day", "type": "i32"},
                      {"name": "time", "type": "i64"}, {"name": "y", "type": "i32"},
                      {"name": "pixels", "type": "f32"}], "id": "id"})");
}

struct Person {
  int64_t id;
  double age = 0;
  std::string city = "Rome";
  int32_t day = 0;
  int64_t time = 0;
  int32_t y = 0;
  std::vector<float> pixels = {1, 2};
};

RowBytes bytes_of(const Person& p) {
  RowBytes row;
  row.add(p.id).add(p.age).text(p.city).add(p.day).add(p.time).add(p.y).add_all(p.pixels);
  return row;
}

TableColumn column(const std::string& text) {
  TableColumn column;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &column)) << text;
  return column;
}

std::vector<TableColumn> requests() {
  return {column("name: 'age'"),
          column("name: 'city' kind: CATEGORY"),
          column("name: 'day' kind: DATE"),
          column("name: 'y' kind: CLASS"),
          column("name: 'pixels' size: 2"),
          column("name: 'time' kind: WEIGHT")};
}

Result<std::vector<float>> encode(const std::vector<TableColumn>& columns, const Person& person) {
  caffe::TableDataParameter::TableTop top;
  for (const TableColumn& column : columns) *top.add_column() = column;
  const RowSchema s = schema();
  CFT_ASSIGN(const TableEncoder encoder, TableEncoder::make(top, s, false));
  std::vector<float> out(size_t(encoder.size()), -7);
  CFT_TRY(encoder.encode(s, bytes_of(person).span(), out.data()));
  return out;
}

std::vector<Person> people(int count) {
  std::mt19937 random(5);
  std::normal_distribution<double> age(40, 12);
  const std::string cities[] = {"Rome", "Oslo", "Lima", ""};
  std::vector<Person> all;
  for (int i = 0; i < count; ++i) {
    Person p{.id = i, .age = i % 10 == 3 ? kNan : age(random), .city = cities[random() % 4]};
    p.day = int32_t(random() % 20000);
    p.y = int32_t(random() % 3) * 5;
    p.time = i % 4;
    p.pixels = {float(i), 3};
    all.push_back(p);
  }
  return all;
}

TableStatistics statistics(std::span<const Person> people) {
  TableStatistics table = *TableStatistics::make(schema(), requests());
  for (const Person& p : people) {
    const Status status = table.add(1, bytes_of(p).span());
    EXPECT_TRUE(status.ok()) << status.message();
  }
  return table;
}

TEST(TableStatistics, AreThoseOfTheRowsForAnyPartitioning) {
  std::vector<Person> rows = people(300);
  const TableStatistics whole = statistics(rows);
  std::mt19937 random(1);
  for (size_t parts : {1, 2, 7}) {
    std::shuffle(rows.begin(), rows.end(), random);
    TableStatistics sum = *TableStatistics::make(schema(), requests());
    for (size_t i = 0; i < parts; ++i) {
      const size_t first = rows.size() * i / parts, last = rows.size() * (i + 1) / parts;
      const TableStatistics part = statistics(std::span(rows).subspan(first, last - first));
      ASSERT_TRUE(sum.merge(*part.bytes()).ok());
    }
    EXPECT_EQ(*sum.bytes(), *whole.bytes()) << parts;
    EXPECT_EQ(sum.rows(), 300);
  }
}

TEST(TableStatistics, AConstantHasNoSpreadWhateverItsDigits) {
  const std::vector number = {column("name: 'age'")};
  for (const double constant : {3.14159, 0.1, 19.99, 1e9 / 7, -1.0 / 3, 1e-20, 1e140}) {
    TableStatistics table = *TableStatistics::make(schema(), number);
    for (int rows = 1; rows <= 400; ++rows) {
      ASSERT_TRUE(table.add(1, bytes_of({.id = rows, .age = constant}).span()).ok());
      const Result<TableColumn> made = table.encoding(0, {});
      ASSERT_TRUE(made.ok()) << made.status().message();
      ASSERT_EQ(made->scale(0), 0) << rows << " times " << constant;
    }
  }
}

TEST(TableStatistics, TheSmallestSpreadAndTheLargestNumbersAreScaled) {
  const std::vector number = {column("name: 'age'")};
  const auto deviation = [&](double first, double second) {
    TableStatistics table = *TableStatistics::make(schema(), number);
    for (int i = 0; i < 30'000; ++i) {
      EXPECT_TRUE(table.add(1, bytes_of({.id = i, .age = i % 2 ? first : second}).span()).ok());
    }
    return 1 / double(table.encoding(0, {})->scale(0));
  };
  EXPECT_NEAR(deviation(1, 1 + 1e-12) / 0.5e-12, 1, 1e-3);
  EXPECT_NEAR(deviation(1e30, -1e30) / 1e30, 1, 1e-6);
}

/// The encoding of a label whose value in row i is i * step.
Result<TableColumn> classes(const std::string& name, int rows, double step) {
  const std::vector label = {column("kind: CLASS name: '" + name + "'")};
  TableStatistics table = *TableStatistics::make(schema(), label);
  for (int i = 0; i < rows; ++i) {
    const std::string city = std::to_string(i * step);
    EXPECT_TRUE(table.add(1, bytes_of({.id = i, .age = i * step, .city = city}).span()).ok());
  }
  TableStatistics driver = *TableStatistics::make(schema(), label);
  EXPECT_TRUE(driver.merge(*table.bytes()).ok());
  return driver.encoding(0, {});
}

TEST(TableStatistics, AQuantityIsNoClass) {
  EXPECT_EQ(classes("age", 20, 0.5)->value_size(), 20);
  EXPECT_EQ(classes("age", 900, 3)->value_size(), 900);
  EXPECT_EQ(classes("city", 900, 0.5)->value_size(), 900) << "text";
  EXPECT_THAT(
      classes("age", 21, 0.5).status().message(),
      AllOf(HasSubstr("the label 'age' has 21 different numbers, such as 0.5"), HasSubstr("text")));
}

TEST(TableStatistics, WeightsHaveTheMeanOne) {
  const std::vector<Person> rows = people(300);
  const TableStatistics table = statistics(rows);
  const TableColumn own = *table.encoding(5, {}),
                    even = *table.class_weights(3, {.balanced = true});
  const TableColumn given = *table.class_weights(3, {.given = {{"5", 0.25}, {"10", 0}}});
  double sum = 0, sum_given = 0;
  std::map<int32_t, double> by_class;
  for (const Person& p : rows) {
    const std::vector<float> x = *encode({own, even, given}, p);
    sum += x[0];
    by_class[p.y] += double(p.time) * x[1];
    sum_given += double(p.time) * x[2];
    EXPECT_EQ(x[2] == 0, p.y == 10);
  }
  EXPECT_NEAR(sum, 300, 1e-3);
  EXPECT_NEAR(sum_given, 300, 1e-3);
  for (const auto& [y, weight] : by_class) EXPECT_NEAR(weight, 100, 1e-3) << y;
}

TEST(TableStatistics, EncodedNumbersHaveMeanZeroAndVarianceOne) {
  const std::vector<Person> rows = people(500);
  const TableStatistics table = statistics(rows);
  const TableColumn age = *table.encoding(0, {}), pixels = *table.encoding(4, {});
  EXPECT_TRUE(age.missing_flag());
  EXPECT_FALSE(pixels.missing_flag());
  EXPECT_EQ(pixels.scale(1), 0) << "a constant";
  double sum = 0, squares = 0, present = 0;
  for (const Person& p : rows) {
    const std::vector<float> x = *encode({age}, p);
    ASSERT_EQ(x.size(), 2u);
    EXPECT_EQ(x[1], std::isnan(p.age) ? 1 : 0);
    if (std::isnan(p.age)) {
      EXPECT_EQ(x[0], 0);
    }
    sum += x[0];
    squares += x[0] * x[0];
    present += 1 - x[1];
  }
  EXPECT_NEAR(sum / present, 0, 1e-6);
  EXPECT_NEAR(squares / present, 1, 1e-6);
}

TEST(TableStatistics, ADeviationFarFromZeroIsNotLost) {
  TableStatistics table = *TableStatistics::make(schema(), std::vector{column("name: 'age'")});
  for (const double age : {1e12, 1e12 + 1, 1e12 + 2}) {
    ASSERT_TRUE(table.add(1, bytes_of({.id = 1, .age = age}).span()).ok());
  }
  EXPECT_DOUBLE_EQ(table.encoding(0, {})->scale(0), std::sqrt(1.5));
}

TEST(TableStatistics, ValuesAreListedByCountAndClassesInOrder) {
  std::vector<Person> rows;
  const std::string cities[] = {"b", "a", "c", "c", "", "a", "c"};
  for (const std::string& city : cities) {
    rows.push_back({.id = int64_t(rows.size()), .city = city, .y = 10 - int32_t(rows.size()) * 2});
  }
  const TableStatistics table = statistics(rows);
  EXPECT_THAT(table.encoding(1, {})->value(), ElementsAre("c", "a", "b"));
  EXPECT_EQ(table.encoding(1, {})->kind(), TableColumn::ONE_HOT);
  const EncodingRules few{.most_one_hot = 0, .most_values = 2};
  EXPECT_THAT(table.encoding(1, few)->value(), ElementsAre("c", "a"));
  EXPECT_EQ(table.encoding(1, few)->kind(), TableColumn::CATEGORY);
  EXPECT_THAT(table.encoding(1, {.least_count = 2})->value(), ElementsAre("c", "a"));
  EXPECT_THAT(table.encoding(3, {})->value(), ElementsAre("-2", "0", "2", "4", "6", "8", "10"));
}

TEST(TableStatistics, Refusals) {
  TableStatistics table = *TableStatistics::make(schema(), requests());
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(table.add(1, bytes_of({.id = 42, .age = infinity}).span()).message(),
              AllOf(HasSubstr("column \"age\", id 42"), HasSubstr("inf is too large")));
  EXPECT_THAT(table.add(1, bytes_of({.id = 7, .pixels = {1}}).span()).message(),
              AllOf(HasSubstr("column \"pixels\", id 7"), HasSubstr("1 values")));
  const auto made = [](const std::string& text) {
    return TableStatistics::make(schema(), std::vector{column(text)}).status().message();
  };
  EXPECT_THAT(made("name: 'city'"), HasSubstr("string cannot be read as numbers"));
  EXPECT_THAT(made("name: 'age' kind: DATE"), HasSubstr("cannot be read as dates"));
  EXPECT_THAT(made("name: 'ages'"), HasSubstr("no column \"ages\""));
  EXPECT_THAT(table.merge("garbage").message(), HasSubstr("another table"));
  TableStatistics other = *TableStatistics::make(schema(), std::vector{column("name: 'age'")});
  EXPECT_THAT(table.merge(*other.bytes()).message(), HasSubstr("another table"));
}

TEST(TableEncoder, ValuesHaveTheirPlaces) {
  const TableColumn city = column("name: 'city' kind: CATEGORY value: 'Rome' value: 'Oslo'");
  TableColumn hot = city;
  hot.set_kind(TableColumn::ONE_HOT);
  const TableColumn y = column("name: 'y' kind: CLASS value: '5' value: '10'");
  const auto of = [&](const std::string& name) {
    return *encode({city, hot, y}, {.id = 1, .city = name, .y = 10});
  };
  EXPECT_THAT(of(""), ElementsAre(0, 1, 0, 0, 0, 1));
  EXPECT_THAT(of("Bonn"), ElementsAre(1, 0, 1, 0, 0, 1));
  EXPECT_THAT(of("Rome"), ElementsAre(2, 0, 0, 1, 0, 1));
  EXPECT_THAT(of("Oslo"), ElementsAre(3, 0, 0, 0, 1, 1));
  EXPECT_THAT(encode({y}, {.id = 9, .y = 4}).status().message(),
              AllOf(HasSubstr("column \"y\", id 9"), HasSubstr("none of the 2 classes")));
}

TEST(TableEncoder, DatesHaveTheirPlaceInYearWeekAndDay) {
  const TableColumn day = column("name: 'day' kind: DATE mean: 10 scale: 0.5");
  // 1970-01-01 is a Thursday; a week later the phase of the week is the same.
  const std::vector<float> first = *encode({day}, {.id = 1, .day = 0});
  EXPECT_THAT(first, ElementsAre(-5, FloatNear(0, 1e-6f), 1, FloatNear(0, 1e-6f), 1));
  const std::vector<float> july = *encode({day}, {.id = 1, .day = 182});  // 1970-07-02
  EXPECT_THAT(july[2], FloatNear(-1, 1e-4f));
  EXPECT_THAT(july[4], FloatEq(first[4]));
  const TableColumn time =
      column("name: 'time' kind: TIMESTAMP mean: 0 scale: 1e-6 missing_flag: true");
  const std::vector<float> six = *encode({time}, {.id = 1, .time = int64_t{6} * 3600 * 1000000});
  ASSERT_EQ(six.size(), 8u);
  EXPECT_FLOAT_EQ(six[0], 6 * 3600);
  EXPECT_THAT(six[5], FloatNear(1, 1e-6f));
  EXPECT_THAT(six[6], FloatNear(0, 1e-6f));
  EXPECT_EQ(six[7], 0);
  EXPECT_THAT(encode({time}, {.id = 3, .time = INT64_MAX}).status().message(),
              HasSubstr("are no date"));
}

TEST(TableEncoder, NumbersOfAllTypesNameTheSameCategory) {
  const TableColumn y = column("name: 'y' kind: CATEGORY value: '5'");
  const TableColumn age = column("name: 'age' kind: CATEGORY value: '5' value: '0.1'");
  EXPECT_THAT(*encode({y, age}, {.id = 1, .age = 5, .y = 5}), ElementsAre(2, 2));
  EXPECT_THAT(*encode({y, age}, {.id = 1, .age = 0.1, .y = 4}), ElementsAre(1, 3));
  EXPECT_THAT(*encode({age}, {.id = 1, .age = kNan}), ElementsAre(0));
}

// pandas writes whole numbers of a column with gaps as 1.0.
TEST(TableEncoder, AWholeNumberWrittenAsAFloatIsTheCategory) {
  const auto of = [&](const std::string& values, const std::string& text) {
    return encode({column("name: 'city' kind: CATEGORY " + values)}, {.id = 1, .city = text})
        ->front();
  };
  EXPECT_EQ(of("value: '1' value: '20'", "20.0"), 3);
  EXPECT_EQ(of("value: '1' value: '1.0'", "1.0"), 3);
  EXPECT_EQ(of("value: '1'", "01"), 1);
  EXPECT_EQ(of("value: '1'", ".0"), 1);
}

TEST(TableEncoder, AGapAmongNumbersReadsAsTheMean) {
  const TableColumn pixels =
      column("name: 'pixels' size: 2 mean: 1 mean: 2 scale: 1 scale: 2 missing_flag: true");
  EXPECT_THAT(*encode({pixels}, {.id = 1, .pixels = {float(kNan), 3}}), ElementsAre(0, 2, 1));
  EXPECT_THAT(*encode({pixels}, {.id = 1, .pixels = {2, 3}}), ElementsAre(1, 2, 0));
  EXPECT_THAT(*encode({pixels}, {.id = 1, .pixels = {}}), ElementsAre(0, 0, 1));
}

TEST(TableEncoder, Refusals) {
  EXPECT_THAT(encode({column("name: 'city'")}, {.id = 4}).status().message(),
              AllOf(HasSubstr("column \"city\", id 4"), HasSubstr("text where a number")));
  EXPECT_THAT(encode({column("name: 'pixels' size: 3")}, {.id = 4}).status().message(),
              HasSubstr("2 values, but those trained on have 3"));
  EXPECT_THAT(encode({column("name: 'age' mean: 1")}, {.id = 4}).status().message(),
              HasSubstr("1 means and 0 scales"));
  EXPECT_THAT(encode({column("name: 'age'")}, {.id = 4, .age = 1e300}).status().message(),
              HasSubstr("finite"));
}

}  // namespace
}  // namespace cafetiere
