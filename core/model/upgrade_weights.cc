// SPDX-License-Identifier: Apache-2.0
#include "core/model/upgrade_weights.h"

#include "core/model/blob.h"

namespace cafetiere {
namespace {

/// Reshapes to a single axis: (1, C, 1, 1) becomes (C).
void flatten(caffe::BlobProto* blob) {
  const Result<Shape> shape = blob_shape(*blob);
  if (!shape.ok()) return;  // the reader reports the error
  blob->clear_num(), blob->clear_channels(), blob->clear_height(), blob->clear_width();
  blob->mutable_shape()->clear_dim();
  blob->mutable_shape()->add_dim(shape->count());
}

}  // namespace

std::vector<int> order_batch_norm_shapes(caffe::LayerParameter* layer) {
  auto* blobs = layer->mutable_blobs();
  if (blobs->size() != 5) return {};
  std::vector<int64_t> counts;
  for (const caffe::BlobProto& blob : *blobs) {
    const Result<Shape> shape = blob_shape(blob);
    counts.push_back(blob.has_shape() && shape.ok() ? shape->count() : 0);
  }
  const int64_t channels = counts[0];
  const bool scale_first = counts[4] == 1 && counts[2] == channels;
  const bool mean_first = counts[2] == 1 && counts[4] == channels;
  if (channels < 2 || counts[1] != channels || counts[3] != channels ||
      !(scale_first || mean_first)) {
    return {};
  }
  for (caffe::BlobProto& blob : *blobs) flatten(&blob);
  if (mean_first) return {};
  blobs->SwapElements(2, 4);  // the others have equal shapes
  return {2, 3, 4, 0, 1};
}

void order_batch_norm(caffe::LayerParameter* layer) {
  if (layer->type() != "BatchNorm" || layer->blobs_size() != 5) return;
  auto* blobs = layer->mutable_blobs();
  if (value_count(blobs->Get(4)) == 1 && value_count(blobs->Get(2)) > 1) {
    // scale, shift, mean, variance, weight
    blobs->SwapElements(0, 2);  // mean, shift, scale, variance, weight
    blobs->SwapElements(1, 3);  // mean, variance, scale, shift, weight
    blobs->SwapElements(2, 4);  // mean, variance, weight, shift, scale
    blobs->SwapElements(3, 4);
  }
  for (caffe::BlobProto& blob : *blobs) flatten(&blob);
}

}  // namespace cafetiere
