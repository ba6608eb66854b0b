// SPDX-License-Identifier: Apache-2.0
#include "cli/table_cells.h"

#include <fmt/format.h>

#include <chrono>

#include "core/data/table_values.h"

namespace cafetiere {
namespace {

constexpr int64_t kMicrosOfSecond = 1'000'000;

void append_bytes(const void* from, size_t size, std::vector<std::byte>* row) {
  const auto* bytes = static_cast<const std::byte*>(from);
  row->insert(row->end(), bytes, bytes + size);
}

template <class T>
void append_value(T value, std::vector<std::byte>* row) {
  const uint32_t size = sizeof value;
  append_bytes(&size, sizeof size, row);
  append_bytes(&value, sizeof value, row);
}

/// Takes parts of a moment from the front of a text.
class Parts {
 public:
  explicit Parts(std::string_view text) : rest_(text) {}

  bool ended() const { return rest_.empty(); }
  bool good() const { return good_; }
  /// Whether one of these comes next, which is taken then.
  bool take(std::string_view any_of) {
    if (rest_.empty() || any_of.find(rest_[0]) == any_of.npos) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void want(std::string_view one) { good_ = take(one) && good_; }
  /// A number of so many digits, of which the last may be.
  int64_t digits(size_t count, int64_t last) {
    int64_t value = 0;
    for (size_t i = 0; i < count; ++i) value = 10 * value + digit();
    good_ = good_ && value <= last;
    return value;
  }
  /// What stands behind a point, in millionths; further digits are passed over.
  int64_t millionths() {
    int64_t value = 0, unit = kMicrosOfSecond / 10;
    do {
      value += unit * digit();
      unit /= 10;
    } while (good_ && !rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9');
    return value;
  }

 private:
  int64_t digit() {
    const char c = rest_.empty() ? ' ' : rest_[0];
    good_ = good_ && c >= '0' && c <= '9';
    if (good_) rest_.remove_prefix(1);
    return good_ ? c - '0' : 0;
  }

  std::string_view rest_;
  bool good_ = true;
};

std::optional<int32_t> day(Parts& parts) {
  const int64_t year = parts.digits(4, 9999);
  parts.want("-");
  const int64_t month = parts.digits(2, 12);
  parts.want("-");
  const int64_t of_month = parts.digits(2, 31);
  const std::chrono::year_month_day date{std::chrono::year(int(year)),
                                         std::chrono::month(unsigned(month)),
                                         std::chrono::day(unsigned(of_month))};
  if (!parts.good() || !date.ok() || year == 0) return {};
  return int32_t(std::chrono::sys_days(date).time_since_epoch().count());
}

/// In microseconds.
int64_t hours_and_minutes(Parts& parts) {
  const int64_t hours = parts.digits(2, 23);
  parts.want(":");
  return (3600 * hours + 60 * parts.digits(2, 59)) * kMicrosOfSecond;
}

/// Hours, minutes and perhaps seconds, in microseconds.
int64_t time_of_day(Parts& parts) {
  const int64_t micros = hours_and_minutes(parts);
  if (!parts.take(":")) return micros;
  const int64_t seconds = parts.digits(2, 59);
  return micros + seconds * kMicrosOfSecond + (parts.take(".,") ? parts.millionths() : 0);
}

std::optional<int64_t> moment(std::string_view text) {
  Parts parts(text);
  const std::optional<int32_t> date = day(parts);
  if (!date) return {};
  int64_t micros = int64_t{*date} * 86'400 * kMicrosOfSecond;
  if (parts.ended()) return micros;
  parts.want("T ");
  micros += time_of_day(parts);
  if (parts.take("+"))
    micros -= hours_and_minutes(parts);
  else if (parts.take("-"))
    micros += hours_and_minutes(parts);
  else
    parts.take("Z");
  if (!parts.good() || !parts.ended()) return {};
  return micros;
}

template <class T>
Status append_read(const std::optional<T>& value, std::string_view text, const char* what,
                   std::vector<std::byte>* row) {
  if (!value) return invalid_argument(fmt::format("\"{}\" is no {}", text, what));
  append_value(*value, row);
  return {};
}

/// What Spark and pandas write of a column of booleans, which was trained on as numbers.
std::optional<double> number_or_truth(std::string_view text) {
  if (text == "true" || text == "True") return 1;
  if (text == "false" || text == "False") return 0;
  return cafetiere::number_of(text);
}

}  // namespace

Status append_cell(ColumnType type, std::string_view text, std::vector<std::byte>* row) {
  if (text.empty() || type == ColumnType::kString) {
    const auto size = uint32_t(text.size());
    append_bytes(&size, sizeof size, row);
    append_bytes(text.data(), text.size(), row);
    return {};
  }
  if (type == ColumnType::kF64) return append_read(number_or_truth(text), text, "number", row);
  if (type == ColumnType::kI64) {
    return append_read(moment(text), text, "moment such as 2020-09-13T12:26:40", row);
  }
  Parts parts(text);
  std::optional<int32_t> date = day(parts);
  if (!parts.ended()) date.reset();
  return append_read(date, text, "date such as 2020-09-13", row);
}

}  // namespace cafetiere
