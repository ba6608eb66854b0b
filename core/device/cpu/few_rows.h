// SPDX-License-Identifier: Apache-2.0
// Inner products of a few rows: as many multiply-adds as numbers to load, so that only the speed counts
// at which the weights come.
#pragma once

#include <string>

#include "core/device/device.h"

namespace cafetiere::few_rows {

std::string declines(const InnerProductGeometry&);
void product(Program&, const std::string& name, const InnerProductGeometry&, TensorId src,
             TensorId weights, TensorId bias, TensorId dst, bool relu);

}  // namespace cafetiere::few_rows
