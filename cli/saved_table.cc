// SPDX-License-Identifier: Apache-2.0
#include "cli/saved_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/model/file.h"
#include "core/model/prototxt.h"

namespace cafetiere {
namespace {

using nlohmann::json;
using TableColumn = caffe::TableDataParameter::Column;
namespace fs = std::filesystem;

constexpr int64_t kMostText = 1 << 30;

Result<json> read_json(const std::string& path) {
  const std::string form = fs::path(path).extension().string();
  if (!form.empty() && form != ".txt" && form != ".json") {
    return invalid_argument(
        fmt::format("{} is compressed as {}: read it in Spark, and save the model again with "
                    "mapreduce.output.fileoutputformat.compress=false",
                    path, form));
  }
  CFT_ASSIGN(const std::string text, read_file(path, kMostText));
  json read = json::parse(text, nullptr, false);
  if (read.is_object()) return read;
  return invalid_argument(fmt::format("{} is no JSON object", path));
}

/// The file of Spark's metadata, whose name Spark has chosen.
Result<std::string> metadata(const fs::path& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder / "metadata", error)) {
    if (entry.path().filename().string().starts_with("part-")) return entry.path().string();
  }
  return not_found(fmt::format("there is no model of a table in {}", folder.string()));
}

/// How a column is read; `learned`: as what, where the model says it, such as the numbers or dates of a
/// category.
ColumnType type_of(const TableColumn& column, std::string_view learned) {
  for (const ColumnType type : {ColumnType::kF64, ColumnType::kI32, ColumnType::kI64}) {
    if (learned == column_type_name(type)) return type;
  }
  switch (column.kind()) {
    case TableColumn::NUMBER:
      return ColumnType::kF64;
    case TableColumn::DATE:
      return ColumnType::kI32;
    case TableColumn::TIMESTAMP:
      return ColumnType::kI64;
    default:
      return ColumnType::kString;
  }
}

/// What of the model stands in its net.
Status take_net(const std::string& text, const json& types, SavedTable* model) {
  CFT_ASSIGN(NetText net, parse_net(text, "the model's net"));
  net.param.clear_state();
  net.param.mutable_state()->set_phase(caffe::TEST);
  net.param.mutable_state()->add_stage("predict");
  for (const caffe::LayerParameter& layer : net.param.layer()) {
    if (layer.top_size() > 0 && layer.top(0) == "probability") model->output = "probability";
    for (const auto& top : layer.table_data_param().top()) {
      for (const TableColumn& column : top.column()) {
        if (top.target() && column.kind() == TableColumn::CLASS) {
          model->classes.assign(column.value().begin(), column.value().end());
        }
        if (top.target()) continue;
        if (column.kind() == TableColumn::IMAGE) {
          return invalid_argument(fmt::format(
              "column \"{}\" has images, which a CSV has not: use Python or Spark", column.name()));
        }
        if (column.size() > 1) {
          return invalid_argument(fmt::format(
              "column \"{}\" has several values in a cell, which a CSV has not", column.name()));
        }
        model->columns.push_back({column.name(), type_of(column, types.value(column.name(), ""))});
      }
    }
  }
  if (model->columns.empty()) return invalid_argument("the model is none of a table");
  model->net = to_text(net.param);
  return {};
}

Result<std::vector<double>> numbers(const json& told, const char* name, const fs::path& folder) {
  std::vector<double> numbers;
  const json list = told.value(name, json());
  if (!list.is_array() && !list.is_null()) {
    return invalid_argument(fmt::format("the model in {} has {} as its {}, which is no list",
                                        folder.string(), list.dump(), name));
  }
  for (const json& number : list) {
    if (!number.is_number()) {
      return invalid_argument(fmt::format("the model in {} has {} among its {}, which is no number",
                                          folder.string(), number.dump(), name));
    }
    numbers.push_back(number.get<double>());
  }
  return numbers;
}

/// How the columns of a model are read, by name, as its table.json says.
Result<json> read_types(const json& told, const fs::path& folder) {
  json types = told.value("types", json());
  const auto is_text = [](const json& type) { return type.is_string(); };
  if (types.is_object() && std::ranges::all_of(types, is_text)) return types;
  return invalid_argument(
      fmt::format("{} has no \"types\" of the model's columns: save the model again",
                  (folder / "table.json").string()));
}

/// The params that a model was saved with: those that were set, and the defaults of the others.
Result<json> read_params(const fs::path& folder) {
  CFT_ASSIGN(const std::string path, metadata(folder));
  CFT_ASSIGN(const json told, read_json(path));
  json params = told.value("defaultParamMap", json::object());
  if (const json set = told.value("paramMap", json::object()); set.is_object()) params.update(set);
  return params;
}

/// A classifier or regressor in a folder, whose net is a model of its own within.
Result<SavedTable> read_of_spark(const fs::path& folder) {
  CFT_ASSIGN(const json params, read_params(folder));
  CFT_ASSIGN(const json of_net, read_params(folder / "net"));
  const json net = of_net.value("net", json());
  if (!net.is_string()) {
    return invalid_argument(fmt::format("the model in {} names no net", folder.string()));
  }
  SavedTable model;
  model.weights = (folder / "net" / "data" / "model.caffemodel").string();
  if (!fs::exists(model.weights)) model.weights += ".h5";  // where it is large
  CFT_ASSIGN(model.quantiles, numbers(params, "quantiles", folder));
  CFT_ASSIGN(model.thresholds, numbers(params, "thresholds", folder));
  CFT_TRY(take_net(net.get<std::string>(), json::object(), &model));
  return model;
}

}  // namespace

Result<SavedTable> read_saved_table(const std::string& path) {
  const fs::path folder(path);
  if (fs::is_directory(folder / "net" / "metadata")) return read_of_spark(folder);
  if (fs::is_directory(folder / "nets")) {
    return invalid_argument(fmt::format(
        "the model in {} has a net for each key: save that of a key, modelOf(key)", path));
  }
  if (!fs::exists(folder / "table.json")) {
    return not_found(fmt::format("there is no model of a table in {}", path));
  }
  CFT_ASSIGN(const json told, read_json((folder / "table.json").string()));
  CFT_ASSIGN(const std::string net, read_file((folder / "net.prototxt").string(), kMostText));
  SavedTable model;
  model.weights = (folder / "model.caffemodel").string();
  CFT_ASSIGN(const json types, read_types(told, folder));
  CFT_TRY(take_net(net, types, &model));
  CFT_ASSIGN(model.quantiles, numbers(told, "quantiles", folder));
  CFT_ASSIGN(model.thresholds, numbers(told, "thresholds", folder));
  return model;
}

}  // namespace cafetiere
