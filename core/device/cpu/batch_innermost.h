// SPDX-License-Identifier: Apache-2.0
// What weight gradients with the batch innermost have in common.
#pragma once

#include <string>

#include "core/device/cpu/convolution.h"

namespace cafetiere::batch_innermost {

/// Outputs of a group, padded to whole vectors: a product of 50 rows is slower than one of 56.
inline int64_t padded_outputs(int64_t outputs) { return (outputs + 7) / 8 * 8; }

/// Emits the step that turns output gradients to [pixel][image][group][output]: those of each group
/// padded with zeros to padded_outputs(). Returns its buffer.
BufferId transpose_pixels(Program& p, const std::string& name, const ConvGeometry& g,
                          TensorId diff);

}  // namespace cafetiere::batch_innermost
