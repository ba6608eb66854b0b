// SPDX-License-Identifier: Apache-2.0
// The bfloat16 weight gradient of convolutions with few source channels, such as colours.
#pragma once

#include <string>

#include "core/device/device.h"

namespace cafetiere::channels_last_bf16 {

/// Whether the source numbers under a kernel are few enough to be laid out for each output pixel.
bool has_short_patches(const ConvGeometry& g);

/// See backward_weights().
void patch_backward_weights(Program& p, const std::string& name, const ConvGeometry& g,
                            TensorId src, TensorId diff_dst, Gradient diff_weights);

}  // namespace cafetiere::channels_last_bf16
