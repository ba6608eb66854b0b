// SPDX-License-Identifier: Apache-2.0
// Conversions: the steps that make one version of a tensor from another.
#pragma once

#include "core/device/program.h"

namespace cafetiere {

/// A step that makes version `to` of a tensor from `from`, which differs in its layout or in its number
/// format, but not in both.
Step conversion_step(const std::string& name, const Shape& shape, const Version& from,
                     BufferId source, const Version& to, BufferId target);

}  // namespace cafetiere
