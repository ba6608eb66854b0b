// SPDX-License-Identifier: Apache-2.0
// Data: batches of Datum records from an LMDB or LevelDB. Tops: the images and, optionally, labels.
#include "core/data/db_source.h"
#include "core/layers/source.h"

namespace cafetiere {
namespace {

class Data : public FileLayer {
 public:
  using FileLayer::FileLayer;
  const std::string& source() const override { return param().data_param().source(); }
  int64_t batch_size() const override { return param().data_param().batch_size(); }
  /// The records determine the number of channels unless the transformations do.
  std::optional<Shape> stated_row(size_t top) const override {
    const caffe::TransformationParameter& p = param().transform_param();
    const int values = p.mean_value_size();
    const int channels = p.force_gray() ? 1 : p.force_color() ? 3 : values > 1 ? values : 0;
    return stated_image(top, channels, 0, 0);
  }
  FileNames names() const override {
    const caffe::TransformationParameter& p = param().transform_param();
    return {.source = source(),
            .backend = caffe::DataParameter::DB_Name(param().data_param().backend()),
            .channels = p.force_gray()    ? 1
                        : p.force_color() ? 3
                                          : 0};
  }
  Status become_rows(const RowForms& forms, caffe::LayerParameter* layer) const override {
    layer->clear_data_param();
    return become_images(forms, layer);
  }
};

}  // namespace

extern const LayerType layer_data{
    .name = "Data",
    .min_bottoms = 0,
    .max_bottoms = 0,
    .max_tops = 2,
    .create = create_layer<Data>,
    .source = true,
    .open = [](const caffe::LayerParameter& param, const SourceOptions& o) {
      return as_source(DbSource::make(param, o.train, o.shards, o.seed, o.log));
    }};

}  // namespace cafetiere
