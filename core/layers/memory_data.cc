// SPDX-License-Identifier: Apache-2.0
// MemoryData: batches passed in by the caller, such as rows of a DataFrame. Tops: data (N, C, H, W)
// and, optionally, labels (N).
#include "core/layers/source.h"

namespace cafetiere {
namespace {

class MemoryData : public SourceLayer {
 public:
  using SourceLayer::SourceLayer;

  Status declared(size_t top, size_t, Shape& shape) const override {
    const caffe::MemoryDataParameter& p = param().memory_data_param();
    if (p.batch_size() == 0 || p.channels() == 0 || p.height() == 0 || p.width() == 0) {
      return invalid_argument(
          "memory_data_param needs batch_size, channels, height and width, all above 0");
    }
    const uint32_t crop = param().transform_param().crop_size();
    shape = top > 0 ? Shape{p.batch_size()}
                    : Shape{p.batch_size(), p.channels(), crop ? crop : p.height(),
                            crop ? crop : p.width()};
    return {};
  }
};

}  // namespace

extern const LayerType layer_memory_data{
    .name = "MemoryData",
    .min_bottoms = 0,
    .max_bottoms = 0,
    .min_tops = 1,
    .max_tops = 2,
    .create = create_layer<MemoryData>,
    .source = true,
    .takes_arrays = true,
    .table = [](const caffe::LayerParameter& param) -> SourceTable {
      const caffe::MemoryDataParameter& p = param.memory_data_param();
      const auto& columns = p.dataframe_column_select();
      return {p.source(), p.dataframe_format(), {columns.begin(), columns.end()}};
    }};

}  // namespace cafetiere
