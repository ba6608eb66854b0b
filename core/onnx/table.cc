// SPDX-License-Identifier: Apache-2.0
// TableData: the columns of a table as inputs of the model, of their own types, and their encoding in
// nodes. Numbers are double, NaN where missing; text is string, "" where missing; dates and timestamps
// are int64, its least where missing, as NumPy's NaT is. Images are their pixels, decoded and resized.
#include <limits>
#include <numbers>

#include "core/onnx/families.h"

namespace cafetiere {
namespace {

using TableColumn = caffe::TableDataParameter::Column;

constexpr int64_t kNoTime = std::numeric_limits<int64_t>::min();
constexpr int64_t kMicrosOfDay = 86'400'000'000;
constexpr int64_t kYearsOfCycle = 400, kDaysOfCycle = 146'097;  // then the calendar repeats itself
constexpr int64_t kCycleBegins = 10'957;                        // 2000-01-01, in days since 1970

std::string cast(OnnxWriter& w, const std::string& x, onnx::TensorProto::DataType type) {
  return w.node("Cast", {x}, {{"to", int64_t(type)}});
}
std::string to_float(OnnxWriter& w, const std::string& x) {
  return cast(w, x, onnx::TensorProto::FLOAT);
}
std::string to_double(OnnxWriter& w, const std::string& x) {
  return cast(w, x, onnx::TensorProto::DOUBLE);
}

std::string joined(OnnxWriter& w, const OnnxValues& parts) {
  return parts.size() == 1 ? parts[0] : w.node("Concat", parts, {{"axis", int64_t{1}}});
}

/// (x - mean) * scale, in doubles.
std::string scaled(OnnxWriter& w, const std::string& x, const TableColumn& column) {
  if (column.mean_size() == 0) return x;
  const auto constant = [&](const google::protobuf::RepeatedField<double>& values) {
    return w.doubles({int64_t(column.size())}, {values.data(), size_t(values.size())});
  };
  const std::string centred = w.node("Sub", {x, constant(column.mean())});
  return w.node("Mul", {centred, constant(column.scale())});
}

std::string numbers(OnnxWriter& w, const TableColumn& column, int64_t rows) {
  const std::string x = w.input(column.name(), onnx::TensorProto::DOUBLE,
                                {rows, int64_t(column.size())}, "numbers; NaN where missing");
  const std::string missing = w.node("IsNaN", {x});
  const std::string value = w.node("Where", {missing, w.real(0), scaled(w, x, column)});
  OnnxValues parts{to_float(w, value)};
  if (column.missing_flag()) {
    const std::string flags = to_float(w, missing);
    parts.push_back(column.size() == 1
                        ? flags
                        : w.node("ReduceMax", {flags},
                                 {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{1}}}));
  }
  return joined(w, parts);
}

/// Days since 1970 at which the years of a cycle begin, counted from the cycle's first.
std::vector<int64_t> beginnings_of_years() {
  std::vector<int64_t> days{0};
  for (int64_t year = 0; year < kYearsOfCycle; ++year) {
    const bool leap = year % 4 == 0 && (year % 100 != 0 || year == 0);
    days.push_back(days.back() + (leap ? 366 : 365));
  }
  return days;
}

/// Where a day, and a part of it, are in their year, from 0 to 1.
std::string share_of_year(OnnxWriter& w, const std::string& day, const std::string& part) {
  const std::string begins = w.integers(beginnings_of_years());
  const std::string since =
      w.node("Mod", {w.node("Sub", {day, w.integer(kCycleBegins)}), w.integer(kDaysOfCycle)});
  // Years of 366 days reach the year or the one before it.
  const std::string low = w.node("Div", {since, w.integer(366)});
  const std::string next = w.node("Add", {low, w.integer(1)});
  const std::string is_next = w.node("GreaterOrEqual", {since, w.node("Gather", {begins, next})});
  const std::string year = w.node("Where", {is_next, next, low});
  const std::string first = w.node("Gather", {begins, year});
  const std::string end = w.node("Gather", {begins, w.node("Add", {year, w.integer(1)})});
  const std::string days = to_double(w, w.node("Sub", {since, first}));
  const std::string into = part.empty() ? days : w.node("Add", {days, part});
  return w.node("Div", {into, to_double(w, w.node("Sub", {end, first}))});
}

/// Sine and cosine of each share of a period.
std::string phases(OnnxWriter& w, const OnnxValues& shares) {
  OnnxValues twice;
  std::vector<double> ahead;  // a cosine is a sine a quarter ahead
  for (const std::string& share : shares) {
    twice.insert(twice.end(), {share, share});
    ahead.insert(ahead.end(), {0, std::numbers::pi / 2});
  }
  const std::string angle = w.node("Mul", {joined(w, twice), w.real(2 * std::numbers::pi)});
  return w.node("Sin", {w.node("Add", {angle, w.doubles({int64_t(ahead.size())}, ahead)})});
}

std::string dates(OnnxWriter& w, const TableColumn& column, int64_t rows) {
  const bool is_time = column.kind() == TableColumn::TIMESTAMP;
  const std::string unit = is_time ? "microseconds" : "days";
  const std::string given =
      w.input(column.name(), onnx::TensorProto::INT64, {rows, 1},
              unit + " since 1970, in UTC; -9223372036854775808 where missing");
  const std::string missing = w.node("Equal", {given, w.integer(kNoTime)});
  const std::string x = w.node("Where", {missing, w.integer(0), given});
  std::string day = x, part;
  if (is_time) {
    const std::string rest = w.node("Mod", {x, w.integer(kMicrosOfDay)});
    day = w.node("Div", {w.node("Sub", {x, rest}), w.integer(kMicrosOfDay)});
    part = w.node("Div", {to_double(w, rest), w.real(double(kMicrosOfDay))});
  }
  std::string of_week = to_double(w, w.node("Mod", {day, w.integer(7)}));
  if (is_time) of_week = w.node("Add", {of_week, part});
  OnnxValues shares{share_of_year(w, day, part), w.node("Div", {of_week, w.real(7)})};
  if (is_time) shares.push_back(part);
  const std::string all = joined(w, {scaled(w, to_double(w, x), column), phases(w, shares)});
  const std::string values = to_float(w, w.node("Where", {missing, w.real(0), all}));
  return column.missing_flag() ? joined(w, {values, to_float(w, missing)}) : values;
}

/// The place of a text in a column's list, from 2 on: 0 missing, 1 none of those.
std::string place(OnnxWriter& w, const TableColumn& column, int64_t rows) {
  const std::string x =
      w.input(column.name(), onnx::TensorProto::STRING, {rows, int64_t(column.size())},
              "text, numbers in their shortest form; \"\" where missing");
  std::vector<std::string> texts{""};
  std::vector<int64_t> places{0};
  for (int i = 0; i < column.value_size(); ++i) {
    texts.push_back(column.value(i));
    places.push_back(i + 2);
  }
  return w.ml_node(
      "LabelEncoder", {x},
      {{"keys_strings", texts}, {"values_int64s", places}, {"default_int64", int64_t{1}}});
}

std::string one_hot(OnnxWriter& w, const TableColumn& column, int64_t rows) {
  std::vector<int64_t> places(size_t(column.value_size()) + 2);
  for (size_t i = 0; i < places.size(); ++i) places[i] = int64_t(i);
  return to_float(w, w.node("Equal", {place(w, column, rows), w.integers(places)}));
}

/// ONNX decodes no files and resizes as others do: the input is what there is behind that.
std::string pixels(OnnxWriter& w, const TableColumn& column, int64_t rows) {
  const auto& shape = column.shape();
  const std::string x =
      w.input(column.name(), onnx::TensorProto::UINT8,
              {rows, int64_t(shape[0]), int64_t(shape[1]), int64_t(shape[2])},
              shape[0] == 1 ? "pixels of gray images" : "pixels: planes of blue, green and red");
  const auto constant = [&](const google::protobuf::RepeatedField<double>& values) {
    return w.doubles({int64_t(shape[0]), 1, 1}, {values.data(), size_t(values.size())});
  };
  const std::string centred = w.node("Sub", {to_double(w, x), constant(column.mean())});
  return to_float(w, w.node("Mul", {centred, constant(column.scale())}));
}

Result<std::string> encoded(OnnxWriter& w, const TableColumn& column, int64_t rows) {
  switch (column.kind()) {
    case TableColumn::NUMBER:
      return numbers(w, column, rows);
    case TableColumn::CATEGORY:
      return to_float(w, place(w, column, rows));
    case TableColumn::ONE_HOT:
      return one_hot(w, column, rows);
    case TableColumn::DATE:
    case TableColumn::TIMESTAMP:
      return dates(w, column, rows);
    case TableColumn::IMAGE:
      return pixels(w, column, rows);
    default:
      return invalid_argument("column '" + column.name() + "' of kind " +
                              TableColumn::Kind_Name(column.kind()) +
                              " has no ONNX form; no layer that is left may read it");
  }
}

Result<OnnxValues> table_data(const ExportLayer& layer, OnnxWriter& w) {
  OnnxValues tops;
  for (int t = 0; t < layer.param.table_data_param().top_size(); ++t) {
    OnnxValues parts;
    for (const TableColumn& column : layer.param.table_data_param().top(t).column()) {
      CFT_ASSIGN(std::string part, encoded(w, column, layer.top_shapes[size_t(t)][0]));
      parts.push_back(std::move(part));
    }
    tops.push_back(joined(w, parts));
  }
  return tops;
}

constexpr Exporter kTableExporters[] = {{"TableData", table_data}};

}  // namespace

extern constinit const OnnxFamily onnx_table{kTableExporters, {}};

}  // namespace cafetiere
