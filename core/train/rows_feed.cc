// SPDX-License-Identifier: Apache-2.0
#include "core/train/rows_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/comm/collectives.h"
#include "core/sync/shuffle.h"
#include "core/train/label_range.h"

namespace cafetiere {
namespace {

/// The shape of one row in its column: before cropping.
Shape row_shape(const Node& node, const Shape& top, size_t index) {
  const caffe::MemoryDataParameter& p = node.param.memory_data_param();
  if (index == 0 && node.param.transform_param().crop_size() > 0 && p.channels() > 0) {
    return {p.channels(), p.height(), p.width()};
  }
  return Shape(std::vector<int64_t>(top.dims().begin() + 1, top.dims().end()));
}

/// What MemoryData and Input declare for a top.
void describe_plain(const Node& node, const Shape& top, size_t index, RowsInput* input) {
  input->row_shape = row_shape(node, top, index);
  input->encoded = index == 0 && node.param.memory_data_param().image_encoded();
  if (index == 0 && node.param.has_transform_param()) {
    input->transform = node.param.transform_param();
  }
}

/// The input of a top, from a column named as its layer says or as the top itself.
Result<RowsInput> describe_input(const Node& node, int index, const Shape& top) {
  RowsInput input;
  input.top = input.column = node.param.top(index);
  if (node.type->rows_input) {
    CFT_TRY(node.type->rows_input(node.param, index, &input).with_context(node.where));
  } else {
    describe_plain(node, top, size_t(index), &input);
  }
  return input;
}

/// The column of a top: as bound, else `own`, its own name for it, else "" where it may be missing.
Result<std::string> column_of(const std::string& top, const std::string& own,
                              const RowSchema& schema, const InputBindings& bindings,
                              bool optional) {
  std::string wanted = own;
  for (const auto& [name, column] : bindings) {
    if (name == top) wanted = column;
  }
  const Result<int> found = schema.find(wanted);
  if (found.ok()) return wanted;
  if (optional) return std::string();
  return found.status().with_context(fmt::format("top '{}' of the data layer", top));
}

}  // namespace

Result<FedLayer> bind_rows(const Graph& graph, const RowSchema& schema,
                           const InputBindings& bindings, bool optional_labels) {
  FedLayer fed;
  for (const Node& node : graph.nodes()) {
    if (!node.type->source) continue;
    if (fed.node) {
      return invalid_argument(
          fmt::format("{}: a table of rows feeds one data layer, but '{}' is one "
                      "too; give its tops to the first",
                      node.where, node.param.name()));
    }
    fed.node = &node;
  }
  if (!fed.node) {
    return invalid_argument(
        fmt::format("net '{}' has no data layer that rows could feed; add a "
                    "MemoryData or Input layer",
                    graph.name()));
  }
  CFT_ASSIGN(const std::vector<Shape> shapes, graph.infer(0));
  for (size_t i = 0; i < fed.node->tops.size(); ++i) {
    const Shape& top = shapes[size_t(fed.node->tops[i])];
    if (top.axes() == 0) return invalid_argument(fed.node->where + ": a top has no batch axis");
    CFT_ASSIGN(RowsInput input, describe_input(*fed.node, int(i), top));
    if (i == 0) fed.batch = top[input.transpose ? 1 : 0];
    if (input.table) {
      input.lenient = optional_labels && i > 0;
    } else {
      CFT_ASSIGN(input.column,
                 column_of(input.top, input.column, schema, bindings, optional_labels && i > 0));
    }
    const LabelRange labels = label_range(graph, shapes, fed.node->tops[i]);
    input.label_classes = labels.ignored ? 0 : labels.classes;
    fed.inputs.push_back(std::move(input));
  }
  for (const auto& [top, column] : bindings) {
    const bool known = std::ranges::find(fed.inputs, top, &RowsInput::top) != fed.inputs.end();
    if (!known && !optional_labels) {
      return invalid_argument(
          fmt::format("column '{}' is bound to '{}', which is not a top of data layer '{}'", column,
                      top, fed.node->param.name()));
    }
  }
  return fed;
}

Result<std::unique_ptr<RowsSource>> make_rows_source(Group* group, RowTable&& rows, int shards,
                                                     const FedLayer& layer, bool train,
                                                     uint64_t seed) {
  CFT_ASSIGN(ShardStore shuffled, shuffle_rows(group, std::move(rows), shards, seed));
  if (shuffled.total_rows() == 0) {
    return invalid_argument("the table has no rows; there is nothing to train on");
  }
  auto store = std::make_shared<const ShardStore>(std::move(shuffled));
  Result<std::unique_ptr<RowsSource>> source =
      RowsSource::make(store, layer.inputs, layer.batch, train, seed);
  CFT_TRY(agree(group, source.ok() ? (*source)->validate() : source.status()));
  return source;
}

Status agree(Group* group, const Status& mine) {
  std::string text(1, char(mine.code()));
  text += mine.message();
  CFT_ASSIGN(const auto all, all_gather_v(group, std::as_bytes(std::span(text))));
  for (const auto& bytes : all) {
    const std::string theirs(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (theirs[0] != char(ErrorCode::kOk)) return {ErrorCode(theirs[0]), theirs.substr(1)};
  }
  return {};
}

}  // namespace cafetiere
