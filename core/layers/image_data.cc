// SPDX-License-Identifier: Apache-2.0
// ImageData: batches of image files from a list. Gives the images and their labels.
#include "core/layers/source.h"

namespace cafetiere {
namespace {

class ImageData : public FileLayer {
 public:
  using FileLayer::FileLayer;
  const std::string& source() const override { return param().image_data_param().source(); }
};

}  // namespace

extern const LayerType layer_image_data{.name = "ImageData",
                                        .min_bottoms = 0,
                                        .max_bottoms = 0,
                                        .min_tops = 2,
                                        .max_tops = 2,
                                        .create = create_layer<ImageData>,
                                        .source = true};

}  // namespace cafetiere
