// SPDX-License-Identifier: Apache-2.0
// Inner products of up to 16 rows: there are so few multiply-adds per weight that the speed of
// loading the weights dominates.
#pragma once

#include <string>

#include "core/device/device.h"

namespace cafetiere::few_rows {

/// Maximum number of rows. For so few, libxsmm would split the inputs and change the order of sums.
inline constexpr int64_t kRows = 16;

std::string declines(const InnerProductGeometry&);
void product(Program&, const std::string& name, const InnerProductGeometry&, TensorId src,
             TensorId weights, TensorId bias, TensorId dst, bool relu);

}  // namespace cafetiere::few_rows
