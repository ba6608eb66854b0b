// SPDX-License-Identifier: Apache-2.0
// What forks of Caffe write differently into weights (docs/dialects.md).
#pragma once

#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// Five blobs of a BatchNorm become mean, variance, their weight, scale and shift, each a plain list.
/// NVIDIA's 0.15 and DIGITS have scale, shift, mean, variance and a fifth of one value; NVIDIA's later
/// versions and Intel's have this order already.
void order_batch_norm(caffe::LayerParameter* layer);

}  // namespace cafetiere
