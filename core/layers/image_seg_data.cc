// SPDX-License-Identifier: Apache-2.0
// ImageSegData (DeepLab): batches of images and label images from a list. Tops: the images, a label
// for each pixel, and the sizes of the images.
#include "core/layers/label_image_data.h"

namespace cafetiere {
namespace {

struct SegFields {
  static const caffe::ImageDataParameter& of(const caffe::LayerParameter& layer) {
    return layer.image_data_param();
  }
};

}  // namespace

extern const LayerType layer_image_seg_data{.name = "ImageSegData",
                                            .min_bottoms = 0,
                                            .max_bottoms = 0,
                                            .min_tops = 2,
                                            .max_tops = 3,
                                            .create = create_layer<LabelImageData<SegFields>>,
                                            .source = true,
                                            .open = open_label_images<LabelImageForm::kSeg>};

}  // namespace cafetiere
