// SPDX-License-Identifier: Apache-2.0
// Inner products of up to 16 rows: few multiply-adds a weight, so that the speed counts at which the
// weights come.
#pragma once

#include <string>

#include "core/device/device.h"

namespace cafetiere::few_rows {

/// At most. With no more images libxsmm would split the inputs, and so sum in another order.
inline constexpr int64_t kRows = 16;

std::string declines(const InnerProductGeometry&);
void product(Program&, const std::string& name, const InnerProductGeometry&, TensorId src,
             TensorId weights, TensorId bias, TensorId dst, bool relu);

}  // namespace cafetiere::few_rows
