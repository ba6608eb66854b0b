// SPDX-License-Identifier: Apache-2.0
// Reorder: copying a tensor from one layout to another.
#pragma once

#include "core/device/program.h"

namespace cafetiere {

/// A step that copies the floats of `source` (in layout `from`) to `target` (in layout `to`), which
/// is float32 or bfloat16.
Step reorder_step(const std::string& name, const Shape& shape, Layout from, BufferId source,
                  Version to, BufferId target);

}  // namespace cafetiere
