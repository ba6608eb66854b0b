// SPDX-License-Identifier: Apache-2.0
// The weight gradient in bfloat16 of a convolution whose source has few channels, such as colours.
#pragma once

#include <string>

#include "core/device/device.h"

namespace cafetiere::channels_last_bf16 {

/// Whether what a kernel covers of the source is short enough to be laid out for each output pixel.
bool has_short_patches(const ConvGeometry& g);

/// As backward_weights().
void patch_backward_weights(Program& p, const std::string& name, const ConvGeometry& g,
                            TensorId src, TensorId diff_dst, Gradient diff_weights);

}  // namespace cafetiere::channels_last_bf16
