// SPDX-License-Identifier: Apache-2.0
// Inner products of few images in bfloat16: the weights, far larger than all else, are read as they are and
// rounded in the caches, so that none but the gradient's are ever written.
#pragma once

#include <string>

#include "core/device/device.h"

namespace cafetiere::few_rows_bf16 {

/// Whether there are few images, and widths that pairs and vectors divide.
bool suits(const InnerProductGeometry&);

void product(Program&, const std::string& name, const InnerProductGeometry&, TensorId src,
             TensorId weights, TensorId bias, TensorId dst, bool relu);
void backward_data(Program&, const std::string& name, const InnerProductGeometry&,
                   TensorId diff_dst, TensorId weights, TensorId diff_src);
void backward_weights(Program&, const std::string& name, const InnerProductGeometry&, TensorId src,
                      TensorId diff_dst, Gradient diff_weights);

}  // namespace cafetiere::few_rows_bf16
