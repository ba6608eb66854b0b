// SPDX-License-Identifier: Apache-2.0
// ImageData: batches of image files from a list. Tops: the images and their labels.
#include "core/data/image_list_source.h"
#include "core/layers/source.h"

namespace cafetiere {
namespace {

class ImageData : public FileLayer {
 public:
  using FileLayer::FileLayer;
  const std::string& source() const override { return param().image_data_param().source(); }
  int64_t batch_size() const override { return param().image_data_param().batch_size(); }
  std::optional<Shape> stated_row(size_t top) const override {
    const caffe::ImageDataParameter& p = param().image_data_param();
    return stated_image(top, p.is_color() ? 3 : 1, p.new_height(), p.new_width());
  }
  FileNames names() const override {
    const caffe::ImageDataParameter& p = param().image_data_param();
    return {.source = source(),
            .root_folder = p.root_folder(),
            .channels = p.is_color() ? 3 : 1,
            .height = p.new_height(),
            .width = p.new_width()};
  }
  Status become_rows(const RowForms& forms, caffe::LayerParameter* layer) const override {
    layer->clear_image_data_param();
    return become_images(forms, layer);
  }
};

}  // namespace

extern const LayerType layer_image_data{
    .name = "ImageData",
    .min_bottoms = 0,
    .max_bottoms = 0,
    .min_tops = 2,
    .max_tops = 2,
    .create = create_layer<ImageData>,
    .source = true,
    .open = [](const caffe::LayerParameter& param, const SourceOptions& o) {
      return as_source(ImageListSource::make(param, o.train, o.shards, o.seed, o.log));
    }};

}  // namespace cafetiere
