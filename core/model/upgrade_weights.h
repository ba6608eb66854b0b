// SPDX-License-Identifier: Apache-2.0
// What forks of Caffe write differently into weights (docs/dialects.md).
#pragma once

#include <vector>

#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// Five blobs of a BatchNorm become mean, variance, their weight, scale and shift, each a plain list.
/// NVIDIA's 0.15 and DIGITS have scale, shift, mean, variance and a fifth of one value; NVIDIA's later
/// versions and Intel's have this order already.
void order_batch_norm(caffe::LayerParameter* layer);

/// The same of a layer in an HDF5 file, which has no type: by the shapes of its blobs, of which four have one
/// size above 1 and the third or fifth has one value, as those of no other layer have. Returns where each blob
/// lies in the file; empty if all are where they were.
std::vector<int> order_batch_norm_shapes(caffe::LayerParameter* layer);

}  // namespace cafetiere
