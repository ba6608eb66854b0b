// SPDX-License-Identifier: Apache-2.0
#include "core/capi/fine_tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/graph/graph.h"
#include "core/layers/registry.h"
#include "core/model/prototxt.h"

namespace cafetiere::capi {
namespace {

using TableColumn = caffe::TableDataParameter::Column;
using Columns = std::vector<TableColumn>;

std::string names_of(const Columns& columns) {
  std::vector<std::string> names;
  for (const TableColumn& column : columns) names.push_back(column.name());
  return fmt::format("{}", fmt::join(names, ", "));
}

const TableColumn* find(const Columns& columns, const std::string& name) {
  const auto found = std::ranges::find(columns, name, [](const auto& c) { return c.name(); });
  return found == columns.end() ? nullptr : &*found;
}

/// Whether a column that was counted can be read as one that was trained on.
bool fits(const TableColumn& counted, const TableColumn& known) {
  const auto names = [](TableColumn::Kind kind) {
    return kind == TableColumn::CATEGORY || kind == TableColumn::ONE_HOT;
  };
  if (names(counted.kind())) {
    return names(known.kind()) && (counted.size() > 1) == (known.size() > 1);
  }
  return counted.kind() == known.kind() && counted.size() == known.size();
}

Status take_features(const Columns& known, Columns* features) {
  for (const TableColumn& column : *features) {
    const TableColumn* same = find(known, column.name());
    if (same && fits(column, *same)) continue;
    return invalid_argument(
        fmt::format("column \"{}\" is {} the initial model, which was trained on {}", column.name(),
                    same ? "of another type than in" : "unknown to", names_of(known)));
  }
  for (const TableColumn& column : known) {
    if (find(*features, column.name())) continue;
    return invalid_argument(
        fmt::format("column \"{}\", which the initial model was trained on, is not among those to "
                    "learn from",
                    column.name()));
  }
  *features = known;
  return {};
}

/// Whether the scores of a label mean what they did.
bool is_same(const TableColumn& counted, const TableColumn& known) {
  const auto is_known = [&](const std::string& value) {
    return std::ranges::find(known.value(), value) != known.value().end();
  };
  return counted.name() == known.name() && counted.kind() == known.kind() &&
         counted.size() == known.size() && std::ranges::all_of(counted.value(), is_known);
}

}  // namespace

Status take_encoding(const std::string& initial, Columns* features, TableTarget* target,
                     std::string* score) {
  CFT_ASSIGN(const NetText net, parse_net(initial, "initial"));
  const auto& layers = net.param.layer();
  const auto table =
      std::ranges::find_if(layers, [](const auto& layer) { return layer.has_table_data_param(); });
  if (table == layers.end()) {
    return invalid_argument("the initial model is no model of a table: it has no layer TableData");
  }
  if (table->top_size() != table->table_data_param().top_size()) {
    return invalid_argument(fmt::format(
        "the initial model's layer {} has {} tops, but {} top blocks in table_data_param",
        table->name(), table->top_size(), table->table_data_param().top_size()));
  }
  Columns known, labels;
  for (int i = 0; i < table->table_data_param().top_size(); ++i) {
    const auto& top = table->table_data_param().top(i);
    Columns& columns = table->top(i) == "label" ? labels : known;
    if (top.target() && &columns == &known) continue;
    columns.insert(columns.end(), top.column().begin(), top.column().end());
  }
  CFT_TRY(take_features(known, features));
  if (std::ranges::equal(target->labels, labels, is_same)) {
    target->labels = labels;
  } else {
    *score = "score/" + target->labels.front().name();
  }
  return {};
}

Status freeze(const std::vector<std::string>& names, caffe::NetParameter* net) {
  if (names.empty()) return {};
  NetText text{*net, "net", {}, {}};
  caffe::NetState state;
  state.set_phase(caffe::TRAIN);
  CFT_ASSIGN(const Graph graph, Graph::build(text, state, {.types = layer_types(), .fed = {}}));
  std::map<std::string, int> params;
  std::set<std::string> statistics;  // layers that would go on observing
  for (const Param& param : graph.params()) {
    ++params[param.layer];
    if (param.kind == ParamKind::kStatistic) statistics.insert(param.layer);
  }
  for (const std::string& name : names) {
    bool found = false;
    for (caffe::LayerParameter& layer : *net->mutable_layer()) {
      if (layer.name() != name && !layer.name().starts_with(name + "/")) continue;
      const auto count = params.find(layer.name());
      if (count == params.end()) continue;
      found = true;
      while (layer.param_size() < count->second) layer.add_param();
      for (caffe::ParamSpec& param : *layer.mutable_param()) {
        param.set_lr_mult(0);
        param.set_decay_mult(0);
      }
      if (statistics.contains(layer.name())) {
        layer.mutable_batch_norm_param()->set_use_global_stats(true);
      }
    }
    if (found) continue;
    std::vector<std::string> all;
    for (const auto& [layer, count] : params) all.push_back(layer);
    return invalid_argument(
        fmt::format("there is no layer \"{}\" with weights to freeze; there are {}", name,
                    fmt::join(all, ", ")));
  }
  return {};
}

}  // namespace cafetiere::capi
