// SPDX-License-Identifier: Apache-2.0
// Differences of forks in the layout of weights (docs/dialects.md).
#pragma once

#include <vector>

#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// Reorders the five blobs of a BatchNorm to mean, variance, their weight, scale and shift, each
/// one-dimensional. NVIDIA's 0.15 and DIGITS store scale, shift, mean, variance and a fifth blob of
/// one value; later versions of NVIDIA's and Intel's forks already use this order.
void order_batch_norm(caffe::LayerParameter* layer);

/// The same for a layer in an HDF5 file, which has no type: recognised by the shapes of its blobs,
/// of which four have an equal size above 1 and the third or fifth has one value, unlike in any
/// other layer. Returns the index in the file of each blob; empty if none moved.
std::vector<int> order_batch_norm_shapes(caffe::LayerParameter* layer);

}  // namespace cafetiere
