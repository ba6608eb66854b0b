// SPDX-License-Identifier: Apache-2.0
// TableData: columns of a table, with numbers, text and dates encoded as numbers. A top has the
// shape (batch, numbers of its columns); that of a single CLASS or WEIGHT has (batch), that of an
// IMAGE (batch, channels, height, width).
#include <fmt/format.h>

#include "core/data/row_reader.h"
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

using Top = caffe::TableDataParameter::TableTop;

/// The shape of one row of a top.
Shape row_shape(const Top& top) {
  using TableColumn = caffe::TableDataParameter::Column;
  const TableColumn::Kind first = top.column(0).kind();
  if (top.column_size() == 1 && (first == TableColumn::CLASS ||
                                 (first == TableColumn::WEIGHT && top.column(0).size() == 1))) {
    return {};
  }
  if (first == TableColumn::IMAGE) {
    return Shape(std::vector<int64_t>(top.column(0).shape().begin(), top.column(0).shape().end()));
  }
  int64_t size = 0;
  for (const caffe::TableDataParameter::Column& column : top.column()) size += encoded_size(column);
  return {size};
}

Status check_images(const Top& top) {
  using TableColumn = caffe::TableDataParameter::Column;
  for (const TableColumn& column : top.column()) {
    if (column.kind() != TableColumn::IMAGE) continue;
    if (top.column_size() > 1) {
      return invalid_argument(
          fmt::format("table_data_param: the image '{}' needs a top of its own", column.name()));
    }
    CFT_TRY(ImageEncoder::make(column).status());
  }
  return {};
}

class TableData : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const caffe::TableDataParameter& p = param().table_data_param();
    if (p.batch_size() == 0) return invalid_argument("table_data_param needs a batch_size above 0");
    if (p.top_size() != int(s.tops.size())) {
      return invalid_argument(fmt::format("{} tops, but {} top blocks in table_data_param",
                                          s.tops.size(), p.top_size()));
    }
    for (int i = 0; i < p.top_size(); ++i) {
      if (p.top(i).column_size() == 0) {
        return invalid_argument(
            fmt::format("table_data_param: top '{}' has no column", param().top(i)));
      }
      CFT_TRY(check_images(p.top(i)));
      std::vector<int64_t> dims = row_shape(p.top(i)).dims();
      dims.insert(dims.begin(), s.batch > 0 ? s.batch : int64_t(p.batch_size()));
      s.tops[size_t(i)] = Shape(std::move(dims));
    }
    return {};
  }
  /// A source's tops are inputs of the plan, which creates them.
  Status forward(LoweringContext&) const override { return {}; }
  Status backward(LoweringContext&) const override { return {}; }
};

Status describe_columns(const caffe::LayerParameter& param, int index, RowsInput* input) {
  const Top& top = param.table_data_param().top(index);
  input->column = top.column(0).name();
  input->row_shape = row_shape(top);
  input->table = top;
  return {};
}

}  // namespace

extern const LayerType layer_table_data{.name = "TableData",
                                        .min_bottoms = 0,
                                        .max_bottoms = 0,
                                        .max_tops = -1,
                                        .create = create_layer<TableData>,
                                        .source = true,
                                        .rows_input = describe_columns};

}  // namespace cafetiere
