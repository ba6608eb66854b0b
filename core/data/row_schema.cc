// SPDX-License-Identifier: Apache-2.0
#include "core/data/row_schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "core/data/hash.h"

namespace cafetiere {
namespace {

using nlohmann::json;

struct TypeInfo {
  std::string_view name;
  size_t bytes;
};
// In the order of ColumnType.
constexpr std::array<TypeInfo, 6> kTypes = {
    {{"u8", 1}, {"i32", 4}, {"i64", 8}, {"f32", 4}, {"f64", 8}, {"string", 1}}};

Result<ColumnType> parse_type(const std::string& name, std::string_view column) {
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<ColumnType>(i);
  }
  return invalid_argument(
      fmt::format("schema: column \"{}\" has the unknown type \"{}\"; known types: u8, i32, i64, "
                  "f32, f64, string",
                  column, name));
}

Status check_keys(const json& object, const std::set<std::string>& known, std::string_view where) {
  for (const auto& item : object.items()) {
    if (!known.contains(item.key())) {
      return invalid_argument(fmt::format("schema: unknown key \"{}\" in {}; known keys: {}",
                                          item.key(), where, fmt::join(known, ", ")));
    }
  }
  return {};
}

Result<Column> parse_column(const json& entry, size_t index) {
  const std::string where = fmt::format("column {}", index);
  if (!entry.is_object()) {
    return invalid_argument("schema: " + where + " is not an object {\"name\", \"type\"}");
  }
  CFT_TRY(check_keys(entry, {"name", "type", "resize"}, where));
  const auto name = entry.find("name"), type = entry.find("type"), resize = entry.find("resize");
  if (name == entry.end() || !name->is_string() || name->get_ref<const std::string&>().empty()) {
    return invalid_argument("schema: " + where + " has no \"name\" (a non-empty text)");
  }
  if (type == entry.end() || !type->is_string()) {
    return invalid_argument("schema: " + where + " has no \"type\" (a text)");
  }
  if (resize != entry.end() && !resize->is_boolean()) {
    return invalid_argument("schema: \"resize\" of " + where + " is not true or false");
  }
  Column column{name->get<std::string>(), ColumnType::kU8,
                resize != entry.end() && resize->get<bool>()};
  CFT_ASSIGN(column.type, parse_type(type->get<std::string>(), column.name));
  return column;
}

template <class T>
std::string first_values(std::span<const std::byte> bytes) {
  constexpr size_t kShown = 4;
  const size_t count = bytes.size() / sizeof(T);
  std::vector<T> values(std::min(count, kShown));
  if (count > 0) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  const std::string text = fmt::format("{}", fmt::join(values, ", "));
  if (count == 1) return text;
  return fmt::format("[{}{}]", text, count > kShown ? ", ..." : "");
}

/// The first 64 bytes of a text or, if they end within a UTF-8 character, those before it.
std::string_view first_characters(std::string_view text) {
  constexpr size_t kShown = 64, kMostBytes = 4;  // of a character
  if (text.size() <= kShown) return text;
  size_t end = kShown;
  while (end > kShown - kMostBytes && (uint8_t(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace

std::string_view column_type_name(ColumnType type) {
  return kTypes[static_cast<size_t>(type)].name;
}
size_t column_type_bytes(ColumnType type) { return kTypes[static_cast<size_t>(type)].bytes; }

std::string Cell::describe() const {
  switch (type) {
    case ColumnType::kU8:
      return first_values<uint8_t>(bytes);
    case ColumnType::kI32:
      return first_values<int32_t>(bytes);
    case ColumnType::kI64:
      return first_values<int64_t>(bytes);
    case ColumnType::kF32:
      return first_values<float>(bytes);
    case ColumnType::kF64:
      return first_values<double>(bytes);
    case ColumnType::kString:
      break;
  }
  const std::string_view shown = first_characters(text());
  return fmt::format("\"{}\"{}", shown, shown.size() < bytes.size() ? "..." : "");
}

Result<RowSchema> RowSchema::parse(std::string_view text) {
  const json root = json::parse(text, nullptr, false);
  if (!root.is_object()) return invalid_argument("schema: the text is not a JSON object");
  CFT_TRY(check_keys(root, {"columns", "id"}, "the schema"));
  const auto columns = root.find("columns");
  if (columns == root.end() || !columns->is_array() || columns->empty()) {
    return invalid_argument("schema: \"columns\" must be a list of at least one column");
  }
  RowSchema schema;
  std::set<std::string> names;
  for (const json& entry : *columns) {
    CFT_ASSIGN(Column column, parse_column(entry, schema.columns.size()));
    if (!names.insert(column.name).second) {
      return invalid_argument("schema: two columns have the name \"" + column.name + "\"");
    }
    schema.columns.push_back(std::move(column));
  }
  if (const auto id = root.find("id"); id != root.end()) {
    if (!id->is_string()) return invalid_argument("schema: \"id\" must be a column name or \"\"");
    const auto& name = id->get_ref<const std::string&>();
    if (!name.empty()) {
      auto found = schema.find(name);
      if (!found.ok()) return found.status().with_context("schema: \"id\"");
      schema.id = *found;
    }
  }
  return schema;
}

Result<int> RowSchema::find(std::string_view name) const {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == name) return static_cast<int>(i);
  }
  std::vector<std::string_view> names;
  for (const Column& column : columns) names.push_back(column.name);
  return not_found(
      fmt::format("there is no column \"{}\"; columns: {}", name, fmt::join(names, ", ")));
}

Cell RowSchema::cell(std::span<const std::byte> row, int column) const {
  return RowCells(*this, row).cell(column);
}

Cell RowCells::cell(int column) {
  if (column < next_) at_ = row_.data(), next_ = 0;
  for (; next_ < column; ++next_) at_ += sizeof(uint32_t) + load_size(at_);
  return {schema_.columns[static_cast<size_t>(column)].type,
          {at_ + sizeof(uint32_t), load_size(at_)}};
}

std::string RowSchema::describe_row(std::span<const std::byte> row) const {
  if (id >= 0) return "id " + cell(row, id).describe();
  const Hash128 hash = hash128(row, 0);
  return fmt::format("the row with hash 0x{:016x}{:016x}", hash.high, hash.low);
}

std::string RowSchema::signature() const {
  std::string text = fmt::format("id {}", id);
  for (const Column& c : columns) {
    text += fmt::format(", {}:{} {}{}", c.name.size(), c.name, column_type_name(c.type),
                        c.resize ? " resized" : "");
  }
  return text;
}

}  // namespace cafetiere
