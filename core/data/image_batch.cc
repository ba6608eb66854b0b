// SPDX-License-Identifier: Apache-2.0
#include "core/data/image_batch.h"

#include <utility>

namespace cafetiere {

Result<ImageBatch> ImageBatch::make(const caffe::LayerParameter& layer, int64_t rows,
                                    const Shape& first, bool train, uint64_t seed,
                                    const Logger& log) {
  CFT_ASSIGN(Transformer transformer,
             Transformer::make(layer.transform_param(), train, first, seed));
  const Shape& out = transformer.out_shape();
  log.info("output data size: {},{},{},{}", rows, out[0], out[1], out[2]);
  return ImageBatch(rows, layer.top_size() > 1, first, std::move(transformer));
}

std::vector<Shape> ImageBatch::top_shapes() const {
  const Shape& out = transformer_.out_shape();
  std::vector<Shape> shapes = {Shape{rows_, out[0], out[1], out[2]}};
  if (labels_) shapes.push_back(Shape{rows_});
  return shapes;
}

}  // namespace cafetiere
