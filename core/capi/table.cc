// SPDX-License-Identifier: Apache-2.0
// Statistics of a table's columns, and the net that is made of them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/split_list.h"
#include "core/capi/boundary.h"
#include "core/capi/fine_tuning.h"
#include "core/capi/options.h"
#include "core/capi/table_handle.h"
#include "core/model/prototxt.h"
#include "core/model/table_net.h"

namespace cafetiere::capi {
namespace {

using TableColumn = caffe::TableDataParameter::Column;
using nlohmann::json;

/// Height and width.
bool is_image_size(const json& value) {
  const auto fits = [](const json& axis) {
    return axis.is_number_integer() && axis.get<int64_t>() >= 1 && axis.get<int64_t>() <= 1 << 13;
  };
  return value.is_array() && value.size() == 2 && fits(value[0]) && fits(value[1]);
}

Result<std::vector<TableColumn>> parse_columns(const std::string& text) {
  const json list = json::parse(text, nullptr, false);
  const auto wrong = [] {
    return invalid_argument(
        "\"columns\" must be a list of {\"name\": TEXT, \"kind\": \"NUMBER\"|\"CATEGORY\"|"
        "\"ONE_HOT\"|\"DATE\"|\"TIMESTAMP\"|\"CLASS\"|\"FLAGS\"|\"WEIGHT\"|\"IMAGE\", \"size\": "
        "numbers in a cell, \"resize\": [height, width] of an IMAGE}");
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
      } else if (key == "resize" && is_image_size(value)) {
        for (int64_t axis : {int64_t{0}, value[0].get<int64_t>(), value[1].get<int64_t>()}) {
          column.add_shape(uint32_t(axis));
        }
      } else if (key != "name") {
        return wrong();
      }
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

}  // namespace

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

namespace {

/// "balanced", or "spam=5, ham=1"; "" = none.
Result<std::optional<ClassWeights>> parse_class_weights(const std::string& text) {
  ClassWeights weights;
  if (text.empty()) return std::optional<ClassWeights>();
  weights.balanced = text == "balanced";
  if (weights.balanced) return std::optional(weights);
  for (const std::string& pair : split_list(text)) {
    const size_t at = pair.rfind('=');
    double weight = 0;
    const char *const begin = pair.data() + at + 1, *const end = pair.data() + pair.size();
    if (at == std::string::npos || std::from_chars(begin, end, weight).ptr != end || begin == end) {
      return invalid_argument(
          fmt::format("class weights \"{}\": \"{}\" is no CLASS=WEIGHT; give \"balanced\" or pairs "
                      "such as \"spam=5, ham=1\"",
                      text, pair));
    }
    weights.given[pair.substr(0, at)] = weight;
  }
  return std::optional(weights);
}

constexpr int64_t kMany = int64_t{1} << 31;

EncodingRules take_rules(Options& options) {
  EncodingRules rules;
  rules.most_one_hot =
      uint64_t(options.number("most_one_hot", int64_t(rules.most_one_hot), 0, kMany));
  rules.most_values = uint64_t(options.number("most_values", int64_t(rules.most_values), 0, kMany));
  rules.least_count = uint64_t(options.number("least_count", int64_t(rules.least_count), 1, kMany));
  return rules;
}

/// Numbers of a list in the options.
template <class T>
Result<std::vector<T>> take_numbers(Options& options, const char* key) {
  std::vector<T> numbers;
  for (const json& number : json::parse(options.list(key), nullptr, false)) {
    if (std::is_integral_v<T> ? !number.is_number_integer() : !number.is_number()) {
      return invalid_argument(
          fmt::format("\"{}\" must be {}numbers", key, std::is_integral_v<T> ? "whole " : ""));
    }
    numbers.push_back(number.get<T>());
  }
  return numbers;
}

Result<TableNetOptions> take_net(const cft_table& table, Options& options) {
  TableNetOptions net;
  net.batch = options.number("batch", net.batch, 1, 1 << 24);
  net.step_rows = std::min(options.number("step_rows", 0, 0, kMany), table.statistics.rows());
  for (size_t i = 0; i < table.names.size(); ++i) {
    net.rows_of_value[table.names[i]] = table.statistics.rows_of_value(i);
  }
  net.activation = options.text("activation", net.activation);
  net.batch_norm = options.number("batch_norm", 0, 0, 1) == 1;
  net.members = options.number("members", net.members, 1, 64);
  net.posterior = options.number("posterior", 1, 0, 1) == 1;
  net.dropout = float(options.real("dropout", 0, 0, 0.999));
  if (const std::string hidden = options.text("net"); !hidden.empty()) {
    CFT_ASSIGN(NetText parsed, parse_net(hidden, "net"));
    net.hidden = std::move(parsed.param);
  }
  if (options.has("layers")) {
    CFT_ASSIGN(net.layers, take_numbers<int64_t>(options, "layers"));
  }
  net.loss = options.text("loss", net.loss);
  net.delta = float(options.real("delta", net.delta, 1e-6, 1e6));
  CFT_ASSIGN(net.quantiles, take_numbers<float>(options, "quantiles"));
  return net;
}

/// The classes' weights have the rows' in their scale.
Status add_class_weights(const cft_table& table, const std::string& label,
                         const ClassWeights& weights, TableTarget* target) {
  const TableColumn::Kind kind = target->labels.front().kind();
  if (kind != TableColumn::CLASS && kind != TableColumn::FLAGS) {
    return invalid_argument(fmt::format(
        "class weights need a label that is learned as classes or flags, unlike \"{}\"", label));
  }
  const auto at = std::ranges::find(table.names, label) - table.names.begin();
  CFT_ASSIGN(TableColumn column, table.statistics.class_weights(size_t(at), weights));
  for (TableColumn& rows : target->weights) rows.clear_scale();
  target->weights.push_back(std::move(column));
  return {};
}

}  // namespace

Result<caffe::NetParameter> net_of(const cft_table& table, const char* text) {
  CFT_ASSIGN(Options options, Options::parse(text));
  std::vector<std::string> labels = options.texts("labels");
  if (labels.empty()) labels.push_back(options.text("label"));
  const EncodingRules rules = take_rules(options);
  CFT_ASSIGN(const auto class_weights, parse_class_weights(options.text("class_weights")));
  CFT_ASSIGN(TableNetOptions net, take_net(table, options));
  const std::string initial = options.text("initial");
  const std::vector<std::string> frozen = options.texts("frozen");
  CFT_TRY(options.done());
  std::vector<TableColumn> features;
  TableTarget target;
  target.labels.resize(labels.size());
  for (size_t i = 0; i < table.names.size(); ++i) {
    CFT_ASSIGN(TableColumn column, table.statistics.encoding(i, rules));
    const auto label = std::ranges::find(labels, table.names[i]);
    if (label != labels.end())
      target.labels[size_t(label - labels.begin())] = std::move(column);
    else
      (column.kind() == TableColumn::WEIGHT ? target.weights : features)
          .push_back(std::move(column));
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    if (target.labels[i].has_name()) continue;
    return not_found(fmt::format("there are no statistics of the label \"{}\"", labels[i]));
  }
  if (!initial.empty()) CFT_TRY(take_encoding(initial, &features, &target, &net.score));
  if (class_weights) CFT_TRY(add_class_weights(table, labels[0], *class_weights, &target));
  CFT_ASSIGN(caffe::NetParameter made, table_net(features, target, net));
  CFT_TRY(freeze(frozen, &made));
  return made;
}

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
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const std::string statistics, table->statistics.bytes());
    return capi::give_bytes(statistics, out, bytes);
  });
}

int cft_table_net(const cft_table* table, const char* options, char** out) {
  CFT_NOT_NULL(table, options, out);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const caffe::NetParameter net, capi::net_of(*table, options));
    return capi::give_text(cafetiere::to_text(net), out);
  });
}

void cft_table_destroy(cft_table* table) { delete table; }
