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

/// The shape of a row in its column, before cropping.
Shape row_shape(const Node& node, const Shape& top, size_t index) {
  const caffe::MemoryDataParameter& p = node.param.memory_data_param();
  if (index == 0 && node.param.transform_param().crop_size() > 0 && p.channels() > 0) {
    return {p.channels(), p.height(), p.width()};
  }
  return Shape(std::vector<int64_t>(top.dims().begin() + 1, top.dims().end()));
}

/// Sets `input` from the declarations of MemoryData and Input for a top.
void describe_plain(const Node& node, const Shape& top, size_t index, RowsInput* input) {
  input->row_shape = row_shape(node, top, index);
  input->encoded = index == 0 && node.param.memory_data_param().image_encoded();
  if (index == 0 && node.param.has_transform_param()) {
    input->transform = node.param.transform_param();
  }
}

/// The input of a top, read from a column named by its layer or named like the top.
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

/// The column of a top: the bound one, else `own`, its default name, else "" if it may be missing.
Result<std::string> column_of(const std::string& top, const std::string& own,
                              const RowSchema& schema, const InputBindings& bindings,
                              bool optional) {
  std::string wanted = own;
  for (const auto& [name, column] : bindings.columns) {
    if (name == top) wanted = column, optional = false;
  }
  const Result<int> found = schema.find(wanted);
  if (found.ok()) return wanted;
  if (optional) return std::string();
  return found.status().with_context(fmt::format("top '{}' of the data layer", top));
}

/// Sets the mean image that the host provides for a top.
Status take_mean(const MeanFiles& files, RowsInput* input) {
  if (!input->transform || !input->transform->has_mean_file()) return {};
  const auto found = files.find(input->transform->mean_file());
  if (found == files.end()) return {};
  CFT_ASSIGN(MeanImage image, parse_mean_image(found->second, found->first));
  input->mean = std::make_shared<const MeanImage>(std::move(image));
  return {};
}

bool is_top(const Graph& graph, const std::string& name) {
  return std::ranges::any_of(graph.nodes(), [&](const Node& node) {
    return node.type->source && std::ranges::find(node.param.top(), name) != node.param.top().end();
  });
}

/// Adds the tops of one data layer.
Status bind_layer(const Graph& graph, const Node& node, const std::vector<Shape>& shapes,
                  const RowSchema& schema, const InputBindings& bindings, bool optional,
                  FedTops* fed) {
  for (size_t i = 0; i < node.tops.size(); ++i) {
    const Shape& top = shapes[size_t(node.tops[i])];
    CFT_ASSIGN(RowsInput input, describe_input(node, int(i), top));
    if (top.axes() <= (input.transpose ? 1 : 0)) {
      return invalid_argument(fmt::format("{}: top '{}' has no batch axis", node.where, input.top));
    }
    const int64_t batch = top[input.transpose ? 1 : 0];
    if (fed->inputs.empty()) fed->batch = batch;
    if (batch != fed->batch) {
      return invalid_argument(fmt::format(
          "{}: top '{}' takes batches of {} rows and '{}' of {}, but a row of the table "
          "feeds all tops of the data layers: make the batch sizes equal",
          node.where, input.top, batch, fed->inputs.front().top, fed->batch));
    }
    CFT_TRY(take_mean(bindings.mean_files, &input).with_context(node.where));
    if (input.table) {
      input.lenient = optional && input.table->target();
    } else {
      CFT_ASSIGN(input.column, column_of(input.top, input.column, schema, bindings, optional));
    }
    const LabelRange labels = label_range(graph, shapes, node.tops[i]);
    input.label_classes = labels.classes;
    input.ignored_label = labels.ignored;
    fed->inputs.push_back(std::move(input));
  }
  return {};
}

}  // namespace

std::vector<std::string> FedTops::names() const {
  std::vector<std::string> names;
  for (const RowsInput& input : inputs) names.push_back(input.top);
  return names;
}

Result<FedTops> bind_rows(const Graph& graph, const RowSchema& schema,
                          const InputBindings& bindings, bool optional) {
  FedTops fed;
  CFT_ASSIGN(const std::vector<Shape> shapes, graph.infer(0));
  for (const Node& node : graph.nodes()) {
    if (!node.type->source) continue;
    CFT_TRY(bind_layer(graph, node, shapes, schema, bindings, optional, &fed));
  }
  if (fed.inputs.empty()) {
    return invalid_argument(
        fmt::format("net '{}' has no data layer that rows could feed; add a "
                    "MemoryData or Input layer",
                    graph.name()));
  }
  const bool is_fed = std::ranges::any_of(
      fed.inputs, [](const RowsInput& input) { return input.table || !input.column.empty(); });
  if (is_fed) return fed;
  const std::string& top = fed.inputs.front().top;
  return schema.find(top).status().with_context(fmt::format("top '{}' of the data layer", top));
}

Status check_bindings(const InputBindings& bindings, const Graph& train, const Graph* test) {
  for (const auto& [top, column] : bindings.columns) {
    if (is_top(train, top) || (test && is_top(*test, top))) continue;
    return invalid_argument(
        fmt::format("column '{}' is bound to '{}', which is not a top of a data layer of net '{}'",
                    column, top, train.name()));
  }
  return {};
}

Result<std::unique_ptr<RowsSource>> make_rows_source(Group* group, RowTable&& rows, int shards,
                                                     const FedTops& tops, bool train,
                                                     uint64_t seed) {
  CFT_ASSIGN(ShardStore shuffled, shuffle_rows(group, std::move(rows), shards, seed));
  if (shuffled.total_rows() == 0) {
    return invalid_argument(train ? "the table has no rows; there is nothing to train on"
                                  : "there are none; hold out a greater share, or mark some rows");
  }
  auto store = std::make_shared<const ShardStore>(std::move(shuffled));
  Result<std::unique_ptr<RowsSource>> source =
      RowsSource::make(store, tops.inputs, tops.batch, train, seed);
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
