// SPDX-License-Identifier: Apache-2.0
// CoSData: the columns of a table, one per top (CaffeOnSpark). The axes of a top are the batch,
// then the first sample_num_axes of channels, height and width; a transposed top, as LSTMs take it,
// has the batch axis after its only other axis.
#include <fmt/format.h>

#include "core/data/row_reader.h"
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

class CosData : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const caffe::CoSDataParameter& p = param().cos_data_param();
    if (p.batch_size() == 0) return invalid_argument("cos_data_param needs a batch_size above 0");
    if (p.top_size() != int(s.tops.size())) {
      return invalid_argument(
          fmt::format("{} tops, but {} top blocks in cos_data_param", s.tops.size(), p.top_size()));
    }
    const int64_t batch = s.batch > 0 ? s.batch : int64_t(p.batch_size());
    for (int i = 0; i < p.top_size(); ++i) CFT_TRY(shape_top(p.top(i), batch, s.tops[size_t(i)]));
    return {};
  }
  /// A source's tops are inputs of the plan, which creates them.
  Status forward(LoweringContext&) const override { return {}; }
  Status backward(LoweringContext&) const override { return {}; }

 private:
  Status shape_top(const caffe::CoSDataParameter::TopBlob& top, int64_t batch, Shape& shape) const {
    const auto where = [&] { return fmt::format("cos_data_param: top '{}'", top.name()); };
    if (top.sample_num_axes() > 3) {
      return invalid_argument(where() + ": sample_num_axes must be 0 to 3");
    }
    const uint32_t crop = top.transform_param().crop_size();
    const auto after = [crop](uint32_t out, uint32_t in) { return out ? out : crop ? crop : in; };
    const int64_t sizes[] = {top.out_channels() ? top.out_channels() : top.channels(),
                             after(top.out_height(), top.height()),
                             after(top.out_width(), top.width())};
    const char* const names[] = {"channels", "height", "width"};
    std::vector<int64_t> dims{batch};
    for (uint32_t axis = 0; axis < top.sample_num_axes(); ++axis) {
      if (sizes[axis] < 1) return invalid_argument(where() + " needs " + names[axis] + " above 0");
      dims.push_back(sizes[axis]);
    }
    if (top.transpose()) {
      if (top.sample_num_axes() != 1) {
        return invalid_argument(where() + ": transpose needs sample_num_axes: 1");
      }
      std::swap(dims[0], dims[1]);
    }
    shape = Shape(std::move(dims));
    return {};
  }
};

/// Describes the column that feeds a top; images are transformed, numbers are used as they are.
Status describe_column(const caffe::LayerParameter& param, int index, RowsInput* input) {
  using Cos = caffe::CoSDataParameter;
  const Cos::TopBlob& top = param.cos_data_param().top(index);
  input->column = top.name();
  const int64_t sizes[] = {top.channels(), top.height(), top.width()};
  input->row_shape = Shape(std::vector<int64_t>(sizes, sizes + top.sample_num_axes()));
  input->transpose = top.transpose();
  input->encoded = top.type() == Cos::ENCODED_IMAGE || top.type() == Cos::ENCODED_IMAGE_WITH_DIM;
  input->interleaved = top.type() == Cos::RAW_IMAGE;
  if (input->encoded || input->interleaved) {
    if (top.sample_num_axes() != 3) {
      return invalid_argument(fmt::format(
          "cos_data_param: top '{}' holds images and needs sample_num_axes: 3", top.name()));
    }
    input->transform = top.transform_param();
  } else if (top.has_transform_param()) {
    return invalid_argument(fmt::format(
        "cos_data_param: top '{}' holds numbers, which transform_param is not for", top.name()));
  }
  return {};
}

}  // namespace

extern const LayerType layer_cos_data{
    .name = "CoSData",
    .min_bottoms = 0,
    .max_bottoms = 0,
    .max_tops = -1,
    .create = create_layer<CosData>,
    .source = true,
    .rows_input = describe_column,
    .table = [](const caffe::LayerParameter& param) -> SourceTable {
      const caffe::CoSDataParameter& p = param.cos_data_param();
      return {p.source(), p.dataframe_format(), {}};
    }};

}  // namespace cafetiere
