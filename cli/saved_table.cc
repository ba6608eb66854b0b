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

ColumnType type_of(const TableColumn& column) {
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
        // A number that names something has the text of a number.
        const bool number = types.value(column.name(), "") == "f64";
        model->columns.push_back({column.name(), number ? ColumnType::kF64 : type_of(column)});
      }
    }
  }
  if (model->columns.empty()) return invalid_argument("the model is none of a table");
  model->net = to_text(net.param);
  return {};
}

Result<SavedTable> read_of_spark(const fs::path& folder) {
  CFT_ASSIGN(const std::string path, metadata(folder));
  CFT_ASSIGN(const json params, read_json(path));
  const json net = params.value(json::json_pointer("/paramMap/net"), json());
  if (!net.is_string()) return invalid_argument(fmt::format("{} names no net", path));
  SavedTable model;
  model.weights = (folder / "data" / "model.caffemodel").string();
  if (!fs::exists(model.weights)) model.weights += ".h5";  // where it is large
  CFT_TRY(take_net(net.get<std::string>(), json::object(), &model));
  return model;
}

}  // namespace

Result<SavedTable> read_saved_table(const std::string& path) {
  const fs::path folder(path);
  if (fs::is_directory(folder / "net" / "metadata")) return read_of_spark(folder / "net");
  if (!fs::exists(folder / "table.json")) {
    return not_found(fmt::format("there is no model of a table in {}", path));
  }
  CFT_ASSIGN(const json told, read_json((folder / "table.json").string()));
  CFT_ASSIGN(const std::string net, read_file((folder / "net.prototxt").string(), kMostText));
  SavedTable model;
  model.weights = (folder / "model.caffemodel").string();
  const json types = told.value("types", json::object());
  if (types.is_object()) CFT_TRY(take_net(net, types, &model));
  for (const json& share : told.value("quantiles", json::array())) {
    if (share.is_number()) model.quantiles.push_back(share.get<double>());
  }
  return model;
}

}  // namespace cafetiere
