// SPDX-License-Identifier: Apache-2.0
// Inner products, and convolutions by 1 x 1 kernels, of float32 tensors as products of bfloat16
// (bf16x6_product.h).
#pragma once

#include <optional>
#include <string>

#include "core/device/device.h"

namespace cafetiere::bf16x6 {

/// Why this form does not accept an inner product; empty if it does. All passes of a product use it
/// or none.
std::string declines(const InnerProductGeometry&);
/// The inner product of the pixels of a convolution with a 1 x 1 kernel of stride 1.
std::optional<InnerProductGeometry> of_pixels(const ConvGeometry&);

/// Images or pixels are rows, channels last.
void product(Program&, const std::string& name, const InnerProductGeometry&, TensorId src,
             TensorId weights, TensorId bias, TensorId dst, bool relu);
void backward_data(Program&, const std::string& name, const InnerProductGeometry&,
                   TensorId diff_dst, TensorId weights, TensorId diff_src);
void backward_weights(Program&, const std::string& name, const InnerProductGeometry&, TensorId src,
                      TensorId diff_dst, Gradient diff_weights);

}  // namespace cafetiere::bf16x6
