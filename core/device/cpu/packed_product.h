// SPDX-License-Identifier: Apache-2.0
// Inner products that use the same weights several times, as the time steps of a recurrent layer
// do: the weights are packed once, for all of them.
#pragma once

#include <string>

#include "core/device/device.h"

namespace cafetiere::packed {

std::string declines(const InnerProductGeometry&);
void product(Program&, const std::string& name, const InnerProductGeometry&, TensorId src,
             TensorId weights, TensorId bias, TensorId dst, bool relu);

std::string declines_backward_data(const InnerProductGeometry&);
void backward_data(Program&, const std::string& name, const InnerProductGeometry&,
                   TensorId diff_dst, TensorId weights, TensorId diff_src);

}  // namespace cafetiere::packed
