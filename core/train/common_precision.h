// SPDX-License-Identifier: Apache-2.0
// What ranks agree on whose solver leaves the precision open.
#pragma once

#include "core/comm/group.h"
#include "core/device/precision.h"

namespace cafetiere {

/// The precision of all ranks: the one that each of them prefers, or float32 if they differ. Every
/// rank calls it; `group` may be null.
Result<Precision> common_precision(Group* group, Precision mine);

}  // namespace cafetiere
