// SPDX-License-Identifier: Apache-2.0
// ImageBatch: the tops of a layer that reads images one by one.
#pragma once

#include <vector>

#include "core/base/log.h"
#include "core/data/transformer.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// The tops: images (N, C, H, W) from the transformer, and labels (N) if there is a second top.
class ImageBatch {
 public:
  /// `first`: the shape of the source's first image before transformation. `rows`: N. Logs the size
  /// of a batch like Caffe.
  static Result<ImageBatch> make(const caffe::LayerParameter& layer, int64_t rows,
                                 const Shape& first, bool train, uint64_t seed, const Logger& log);

  int64_t rows() const { return rows_; }
  bool labels() const { return labels_; }
  const Shape& first() const { return first_; }
  const Transformer& transformer() const { return transformer_; }
  std::vector<Shape> top_shapes() const;
  /// The start of row j in the image top.
  float* row(float* top, int64_t j) const { return top + j * transformer_.out_shape().count(); }

 private:
  ImageBatch(int64_t rows, bool labels, Shape first, Transformer transformer)
      : rows_(rows),
        labels_(labels),
        first_(std::move(first)),
        transformer_(std::move(transformer)) {}

  int64_t rows_;
  bool labels_;
  Shape first_;
  Transformer transformer_;
};

}  // namespace cafetiere
