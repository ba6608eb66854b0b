// SPDX-License-Identifier: Apache-2.0
// Conversions: the steps that make one version of a tensor from another.
#pragma once

#include "core/device/program.h"

namespace cafetiere {

class Queue;

/// A step that makes version `to` of a tensor from `from`, which differs in one of its layout, its number
/// format and its memory. `queue` is that of the device whose memory one of them is in.
Step conversion_step(const std::string& name, const Shape& shape, const Version& from,
                     BufferId source, const Version& to, BufferId target, Queue* queue);

}  // namespace cafetiere
