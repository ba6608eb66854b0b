// SPDX-License-Identifier: Apache-2.0
// Statistics of a table's columns, and the net that is made of them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/capi/boundary.h"
#include "core/capi/options.h"
#include "core/data/table_statistics.h"
#include "core/model/prototxt.h"
#include "core/model/table_net.h"

struct cft_table {
  std::vector<std::string> names;
  cafetiere::TableStatistics statistics;
};

namespace cafetiere::capi {
namespace {

using TableColumn = caffe::TableDataParameter::Column;
using nlohmann::json;

Result<std::vector<TableColumn>> parse_columns(const std::string& text) {
  const json list = json::parse(text, nullptr, false);
  const auto wrong = [] {
    return invalid_argument(
        "\"columns\" must be a list of {\"name\": TEXT, \"kind\": \"NUMBER\"|\"CATEGORY\"|"
        "\"ONE_HOT\"|\"DATE\"|\"TIMESTAMP\"|\"CLASS\", \"size\": numbers in a cell}");
  };
  if (!list.is_array() || list.empty()) return wrong();
  std::vector<TableColumn> columns;
  for (const json& entry : list) {
    if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string()) return wrong();
    TableColumn column;
    column.set_name(entry["name"].get<std::string>());
    for (const auto& [key, value] : entry.items()) {
      TableColumn::Kind kind;
      if (key == "kind" && value.is_string() &&
          TableColumn::Kind_Parse(value.get<std::string>(), &kind)) {
        column.set_kind(kind);
      } else if (key == "size" && value.is_number_unsigned() && value.get<uint64_t>() <= 1u << 30) {
        column.set_size(value.get<uint32_t>());
      } else if (key != "name") {
        return wrong();
      }
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

Result<cft_table*> make_table(const char* text) {
  CFT_ASSIGN(Options options, Options::parse(text));
  const std::string schema_text = options.object("schema");
  const std::string columns_text = options.list("columns");
  CFT_TRY(options.done());
  CFT_ASSIGN(const RowSchema schema, RowSchema::parse(schema_text));
  CFT_ASSIGN(const std::vector<TableColumn> columns, parse_columns(columns_text));
  CFT_ASSIGN(TableStatistics statistics, TableStatistics::make(schema, columns));
  std::vector<std::string> names;
  for (const TableColumn& column : columns) names.push_back(column.name());
  return new cft_table{std::move(names), std::move(statistics)};
}

/// How much more embeddings decay than other weights, so that what few rows say of a value is not learned by
/// heart. Their pull is to be worth some rows of each value, and a step sees a share of the table; but Adam
/// moves what is seldom seen by the root of that share further. The factors are those that were best on
/// bench/tables/generated.py.
float embedding_decay(int64_t step_rows, int64_t rows) {
  constexpr double kOfAWholeTable = 6000, kMost = 300;
  if (step_rows == 0 || rows == 0) return 1;
  const double share = double(step_rows) / double(rows);
  return float(std::clamp(kOfAWholeTable * std::sqrt(share), 1.0, kMost));
}

Result<std::string> net_text(const cft_table& table, const char* text) {
  CFT_ASSIGN(Options options, Options::parse(text));
  EncodingRules rules;
  TableNetOptions net;
  const std::string label = options.text("label");
  constexpr int64_t kMany = int64_t{1} << 31;
  rules.most_one_hot =
      uint64_t(options.number("most_one_hot", int64_t(rules.most_one_hot), 0, kMany));
  rules.most_values = uint64_t(options.number("most_values", int64_t(rules.most_values), 0, kMany));
  rules.least_count = uint64_t(options.number("least_count", int64_t(rules.least_count), 1, kMany));
  net.batch = options.number("batch", net.batch, 1, 1 << 24);
  net.embedding_decay =
      embedding_decay(options.number("step_rows", 0, 0, kMany), table.statistics.rows());
  net.activation = options.text("activation", net.activation);
  net.batch_norm = options.number("batch_norm", 0, 0, 1) == 1;
  net.dropout = float(options.real("dropout", 0, 0, 0.999));
  if (const std::string hidden = options.text("net"); !hidden.empty()) {
    CFT_ASSIGN(NetText parsed, parse_net(hidden, "net"));
    net.hidden = std::move(parsed.param);
  }
  if (options.has("layers")) {
    const json layers = json::parse(options.list("layers"), nullptr, false);
    net.layers.clear();
    for (const json& units : layers) {
      if (!units.is_number_integer()) return invalid_argument("\"layers\" must be whole numbers");
      net.layers.push_back(units.get<int64_t>());
    }
  }
  CFT_TRY(options.done());
  std::vector<TableColumn> features;
  std::optional<TableColumn> target;
  for (size_t i = 0; i < table.names.size(); ++i) {
    CFT_ASSIGN(TableColumn column, table.statistics.encoding(i, rules));
    if (table.names[i] == label)
      target = std::move(column);
    else
      features.push_back(std::move(column));
  }
  if (!target) return not_found(fmt::format("there are no statistics of the label \"{}\"", label));
  CFT_ASSIGN(const caffe::NetParameter made, table_net(features, *target, net));
  return to_text(made);
}

}  // namespace
}  // namespace cafetiere::capi

using cafetiere::Status;
namespace capi = cafetiere::capi;

int cft_table_create(const char* options, cft_table** out) {
  CFT_NOT_NULL(options, out);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(*out, capi::make_table(options));
    return {};
  });
}

int cft_table_add(cft_table* table, int64_t count, const void* chunk, uint64_t bytes) {
  CFT_NOT_NULL(table);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const auto rows, capi::given_bytes(chunk, bytes, "chunk"));
    return table->statistics.add(count, rows);
  });
}

int cft_table_merge(cft_table* table, const void* statistics, uint64_t bytes) {
  CFT_NOT_NULL(table);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const auto given, capi::given_bytes(statistics, bytes, "statistics"));
    return table->statistics.merge(capi::text_of(given));
  });
}

int cft_table_statistics(const cft_table* table, void** out, uint64_t* bytes) {
  CFT_NOT_NULL(table, out, bytes);
  return capi::guarded([&] { return capi::give_bytes(table->statistics.bytes(), out, bytes); });
}

int cft_table_net(const cft_table* table, const char* options, char** out) {
  CFT_NOT_NULL(table, options, out);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const std::string text, capi::net_text(*table, options));
    return capi::give_text(text, out);
  });
}

void cft_table_destroy(cft_table* table) { delete table; }
