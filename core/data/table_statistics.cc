// SPDX-License-Identifier: Apache-2.0
#include "core/data/table_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/data/raw_cell.h"
#include "core/data/table_values.h"
#include "core/model/proto/table.pb.h"

namespace cafetiere {
namespace {

using TableColumn = caffe::TableDataParameter::Column;

constexpr double kMostNumber = 1e140;      // n² of its square is a finite double for any table
constexpr size_t kMostBytes = 2147483647;  // of a message
constexpr size_t kMostFractions = 20;  // classes such as 0.5 and 1.5; more of them are quantities

bool lists_values(TableColumn::Kind kind) {
  return kind == TableColumn::CATEGORY || kind == TableColumn::CLASS;
}

bool has_numbers(TableColumn::Kind kind) {
  return !lists_values(kind) && kind != TableColumn::FLAGS && kind != TableColumn::IMAGE;
}

std::string_view kind_words(TableColumn::Kind kind) {
  switch (kind) {
    case TableColumn::NUMBER:
      return "numbers";
    case TableColumn::CATEGORY:
    case TableColumn::ONE_HOT:
      return "categories";
    case TableColumn::DATE:
      return "dates";
    case TableColumn::TIMESTAMP:
      return "times";
    case TableColumn::CLASS:
      return "classes";
    case TableColumn::WEIGHT:
      return "weights";
    case TableColumn::FLAGS:
      return "flags, each 0 or 1";
    case TableColumn::IMAGE:
      return "images";
  }
  return "what the net takes";
}

/// Whether cells of a type can be read as a column kind.
bool fits(TableColumn::Kind kind, ColumnType type) {
  if (lists_values(kind)) return true;
  if (kind == TableColumn::DATE) return type == ColumnType::kI32;
  if (kind == TableColumn::TIMESTAMP) return type == ColumnType::kI64;
  if (kind == TableColumn::IMAGE) return type == ColumnType::kU8;
  return type != ColumnType::kString;
}

/// The standard deviation of n values, from n Σx² - (Σx)² in double-double arithmetic. What lies
/// below the rounding of that is none: the values are all equal.
double deviation(uint64_t n, const ExactSum& sum, const ExactSum& squares) {
  const auto [s, s_low] = sum.value();
  const auto [q, q_low] = squares.value();
  const double count = double(n), nq = count * q, ss = s * s;
  const double rest = std::fma(count, q, -nq) + count * q_low;
  const double rest_ss = std::fma(s, s, -ss) + 2 * s * s_low;
  const double spread = (nq - ss) + (rest - rest_ss);
  constexpr double kRounding = 0x1p-100;  // the terms above are exact to some 2^-102
  return spread > nq * kRounding ? std::sqrt(spread) / count : 0;
}

void add_to(ExactSum* sum, const google::protobuf::RepeatedField<int64_t>& digits) {
  using Digits = std::span<const int64_t, ExactSum::kDigits>;
  sum->add(ExactSum::of(Digits(digits.data(), ExactSum::kDigits)));
}

/// Refuses a column of numbers, many of them and some with fractions, as a label of classes.
Status check_classes(const TableColumn& label, ColumnType type,
                     std::span<const std::string> classes) {
  if (type == ColumnType::kString || classes.size() <= kMostFractions) return {};
  const auto has_fraction = [](const std::string& text) {
    const std::optional<double> number = as_number(text);
    return number && *number != std::floor(*number);
  };
  const auto found = std::ranges::find_if(classes, has_fraction);
  if (found == classes.end()) return {};
  return invalid_argument(
      fmt::format("the label '{}' has {} different numbers, such as {}: learn a number, with a "
                  "regressor or --learn numbers, or cast the label to text if each is a class",
                  label.name(), classes.size(), *found));
}

/// The most frequent values; ties in byte order.
std::vector<std::string> frequent(const std::map<std::string, uint64_t, std::less<>>& values,
                                  const EncodingRules& rules) {
  std::vector<std::pair<uint64_t, std::string_view>> counted;
  for (const auto& [value, count] : values) {
    if (count >= rules.least_count) counted.emplace_back(count, value);
  }
  std::ranges::stable_sort(counted, std::ranges::greater{}, &decltype(counted)::value_type::first);
  if (counted.size() > rules.most_values) counted.resize(size_t(rules.most_values));
  std::vector<std::string> list;
  for (const auto& [count, value] : counted) list.emplace_back(value);
  return list;
}

}  // namespace

Result<TableStatistics> TableStatistics::make(const RowSchema& schema,
                                              std::span<const TableColumn> columns) {
  TableStatistics table(schema);
  for (const TableColumn& request : columns) {
    Counted column;
    column.request.set_name(request.name());
    column.request.set_kind(request.kind() == TableColumn::ONE_HOT ? TableColumn::CATEGORY
                                                                   : request.kind());
    column.request.set_size(request.size());
    CFT_ASSIGN(column.place, schema.find(request.name()));
    const ColumnType type = schema.columns[size_t(column.place)].type;
    if (!fits(column.request.kind(), type)) {
      return invalid_argument(fmt::format("column \"{}\" of type {} cannot be read as {}",
                                          request.name(), column_type_name(type),
                                          kind_words(request.kind())));
    }
    const TableColumn::Kind kind = column.request.kind();
    if (kind == TableColumn::IMAGE) {
      *column.request.mutable_shape() = request.shape();
      column.images.emplace(request);
    }
    if (kind == TableColumn::CATEGORY && request.size() == 0) {
      table.columns_.push_back(std::move(column));
      continue;
    }
    const bool single = kind != TableColumn::NUMBER && kind != TableColumn::FLAGS;
    if (request.size() < 1 || (single && request.size() != 1)) {
      return invalid_argument(fmt::format("column \"{}\": {} numbers in a cell of kind {}",
                                          request.name(), request.size(),
                                          TableColumn::Kind_Name(request.kind())));
    }
    if (has_numbers(kind) || kind == TableColumn::FLAGS) column.numbers.resize(request.size());
    if (kind == TableColumn::WEIGHT) {
      if (table.weight_ >= 0) return invalid_argument("only one column holds the rows' weights");
      table.weight_ = int(table.columns_.size());
    }
    table.columns_.push_back(std::move(column));
  }
  return table;
}

Status TableStatistics::add(int64_t count, std::span<const std::byte> chunk) {
  RowTable rows(schema_);
  CFT_TRY(rows.append(count, chunk));
  return add(rows);
}

Status TableStatistics::add(const RowTable& rows) {
  for (int64_t i = 0; i < rows.rows(); ++i) {
    const auto where = [&](const Counted& column) {
      return fmt::format("column \"{}\", {}", column.request.name(),
                         schema_.describe_row(rows.row(i)));
    };
    RowCells cells(schema_, rows.row(i));
    double weight = 1;
    if (weight_ >= 0) {
      const Counted& column = columns_[size_t(weight_)];
      const Result<double> given = weight_of(cells.cell(column.place));
      if (!given.ok()) return given.status().with_context(where(column));
      weight = *given;
    }
    for (Counted& column : columns_) {
      const Status status = add_cell(column, cells.cell(column.place), weight);
      if (!status.ok()) return status.with_context(where(column));
    }
  }
  rows_ += rows.rows();
  return {};
}

Status TableStatistics::add_cell(Counted& column, const Cell& cell, double weight) {
  const TableColumn::Kind kind = column.request.kind();
  if (is_missing(cell)) {
    if (kind == TableColumn::CLASS || kind == TableColumn::FLAGS) {
      return invalid_argument("the label is missing; drop such rows, or fill it");
    }
    ++column.missing;
    return {};
  }
  if (column.images) return column.images->add(cell);
  if (column.request.size() == 0) {
    uint64_t values = 0;
    CFT_TRY(each_value(cell, [&](std::string_view value) {
      ++values;
      return add_value(column, value, 1);
    }));
    column.longest = std::max(column.longest, values);
    return {};
  }
  if (cell.values() != int64_t(column.request.size())) {
    return invalid_argument(fmt::format("{} values, but rows before have {}: all must have as many",
                                        cell.values(), column.request.size()));
  }
  if (kind == TableColumn::FLAGS) return add_flags(column, cell, weight);
  if (has_numbers(kind)) return add_numbers(column, cell);
  std::string room;
  const std::string_view value = category_of(cell, room);
  if (kind == TableColumn::CLASS && weight_ >= 0) column.weights[std::string(value)].add(weight);
  return add_value(column, value, 1);
}

Status TableStatistics::add_numbers(Counted& column, const Cell& cell) {
  for (size_t i = 0; i < column.numbers.size(); ++i) {
    const double x = number_at(cell, int64_t(i));
    if (std::isnan(x)) continue;  // a missing number among others
    if (!(std::abs(x) <= kMostNumber)) {
      return invalid_argument(fmt::format(
          "the number {} is too large to be scaled; clip the column, or drop such rows", x));
    }
    Numbers& numbers = column.numbers[i];
    ++numbers.count;
    numbers.sum.add(x);
    numbers.squares.add_square(x);
  }
  return {};
}

Status TableStatistics::add_flags(Counted& column, const Cell& cell, double weight) {
  for (size_t i = 0; i < column.numbers.size(); ++i) {
    CFT_ASSIGN(const float flag, flag_at(cell, int64_t(i)));
    if (flag > 0) column.numbers[i].sum.add(weight);
  }
  return {};
}

Status TableStatistics::add_value(Counted& column, std::string_view value, uint64_t count) {
  const auto known = column.values.find(value);
  if (known != column.values.end()) {
    known->second += count;
    return {};
  }
  if (column.values.size() >= kMostValues) {
    return invalid_argument(
        fmt::format("column \"{}\" has more than {} different values; leave it out if it names "
                    "rows, or hash it to "
                    "fewer values before",
                    column.request.name(), kMostValues));
  }
  column.values.emplace(value, count);
  return {};
}

Result<std::string> TableStatistics::bytes() const {
  table::Statistics all;
  for (const Counted& column : columns_) {
    table::Column& out = *all.add_column();
    out.set_name(column.request.name());
    out.set_kind(column.request.kind());
    out.set_size(column.request.size());
    out.set_rows(uint64_t(rows_));
    out.set_missing(column.missing);
    if (column.request.size() == 0) out.set_longest(column.longest);
    if (column.images) *out.mutable_images() = column.images->counts();
    for (const Numbers& numbers : column.numbers) {
      table::Numbers& n = *out.add_numbers();
      n.set_count(numbers.count);
      const auto sum = numbers.sum.digits(), squares = numbers.squares.digits();
      n.mutable_sum()->Add(sum.begin(), sum.end());
      n.mutable_squares()->Add(squares.begin(), squares.end());
    }
    for (const auto& [value, count] : column.values) {
      table::Value& v = *out.add_value();
      v.set_value(value);
      v.set_count(count);
      const auto weight = column.weights.find(value);
      if (weight == column.weights.end()) continue;
      const auto digits = weight->second.digits();
      v.mutable_weight()->Add(digits.begin(), digits.end());
    }
  }
  if (all.ByteSizeLong() > kMostBytes) {
    return invalid_argument(
        "the distinct texts of the table's columns have more than 2 GiB: leave out, or shorten, a "
        "column of long texts, each of which is rare");
  }
  return all.SerializeAsString();
}

Status TableStatistics::merge(std::string_view bytes) {
  const auto other = [] { return invalid_argument("these are statistics of another table"); };
  table::Statistics all;
  if (bytes.size() > kMostBytes || !all.ParseFromArray(bytes.data(), int(bytes.size())))
    return other();
  if (all.column_size() != int(columns_.size())) return other();
  for (size_t i = 0; i < columns_.size(); ++i) {
    const table::Column& in = all.column(int(i));
    Counted& column = columns_[i];
    if (in.name() != column.request.name() || in.kind() != column.request.kind() ||
        in.size() != column.request.size() || in.numbers_size() != int(column.numbers.size())) {
      return other();
    }
    for (int k = 0; k < in.numbers_size(); ++k) {
      const table::Numbers& n = in.numbers(k);
      if (n.sum_size() != ExactSum::kDigits || n.squares_size() != ExactSum::kDigits)
        return other();
      Numbers& numbers = column.numbers[size_t(k)];
      numbers.count += n.count();
      add_to(&numbers.sum, n.sum());
      add_to(&numbers.squares, n.squares());
    }
    for (const table::Value& v : in.value()) {
      CFT_TRY(add_value(column, v.value(), v.count()));
      if (v.weight_size() == ExactSum::kDigits) add_to(&column.weights[v.value()], v.weight());
    }
    if (column.images) column.images->merge(in.images());
    column.missing += in.missing();
    column.longest = std::max(column.longest, uint64_t(in.longest()));
  }
  if (all.column_size() > 0) rows_ += int64_t(all.column(0).rows());
  return {};
}

double TableStatistics::rows_of_value(size_t i) const {
  const auto& values = columns_[i].values;
  double rows = 0;
  for (const auto& [value, count] : values) rows += double(count);
  return values.empty() ? 0 : rows / double(values.size());
}

Result<TableColumn> TableStatistics::encoding(size_t i, const EncodingRules& rules) const {
  const Counted& column = columns_[i];
  TableColumn out = column.request;
  if (out.size() == 1) out.clear_size();
  if (lists_values(out.kind())) {
    const bool is_class = out.kind() == TableColumn::CLASS;
    const auto list = is_class ? class_names(column.values) : frequent(column.values, rules);
    if (is_class) {
      CFT_TRY(check_classes(out, schema_.columns[size_t(column.place)].type, list));
    }
    const bool several = out.size() == 0;
    if (several)
      out.set_size(uint32_t(std::clamp<uint64_t>(column.longest, 2, rules.most_in_cell)));
    if (!is_class && !several && list.size() <= rules.most_one_hot)
      out.set_kind(TableColumn::ONE_HOT);
    for (const std::string& value : list) out.add_value(value);
    return out;
  }
  if (out.kind() == TableColumn::FLAGS) return out;
  if (column.images) {
    CFT_TRY(column.images->encode(&out));
    return out;
  }
  if (out.kind() == TableColumn::WEIGHT) {
    const double sum = column.numbers[0].sum.value().high;
    if (!(sum > 0)) {
      return invalid_argument(fmt::format("column \"{}\": all weights are 0", out.name()));
    }
    out.add_scale(double(rows_) / sum);
    return out;
  }
  for (const Numbers& numbers : column.numbers) {
    const uint64_t n = numbers.count;
    const double scatter = n > 0 ? deviation(n, numbers.sum, numbers.squares) : 0;
    out.add_mean(n > 0 ? numbers.sum.value().high / double(n) : 0);
    out.add_scale(scatter > 0 ? 1 / scatter : 0);
  }
  const bool gaps = std::ranges::any_of(
      column.numbers, [&](const Numbers& numbers) { return numbers.count < uint64_t(rows_); });
  if (gaps) out.set_missing_flag(true);
  return out;
}

}  // namespace cafetiere
