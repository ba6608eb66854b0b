// SPDX-License-Identifier: Apache-2.0
// DenseImageData (SegNet): batches of images and label images from a list. Tops: the images, and a
// label for each pixel.
#include "core/layers/label_image_data.h"

namespace cafetiere {
namespace {

struct DenseFields {
  static const caffe::DenseImageDataParameter& of(const caffe::LayerParameter& layer) {
    return layer.dense_image_data_param();
  }
};

}  // namespace

extern const LayerType layer_dense_image_data{.name = "DenseImageData",
                                              .min_bottoms = 0,
                                              .max_bottoms = 0,
                                              .min_tops = 2,
                                              .max_tops = 2,
                                              .create = create_layer<LabelImageData<DenseFields>>,
                                              .source = true,
                                              .open = open_label_images<LabelImageForm::kDense>};

}  // namespace cafetiere
