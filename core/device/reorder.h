// SPDX-License-Identifier: Apache-2.0
// Reorder: copying a tensor from one layout to another.
#pragma once

#include "core/device/program.h"

namespace cafetiere {

/// A step that copies `source` (in layout `from`) to `target` (in layout `to`).
Step reorder_step(const std::string& name, const Shape& shape, Layout from, BufferId source,
                  Layout to, BufferId target);

}  // namespace cafetiere
