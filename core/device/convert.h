// SPDX-License-Identifier: Apache-2.0
// Conversions: the steps that convert a tensor from one version to another.
#pragma once

#include "core/device/program.h"

namespace cafetiere {

class Queue;

/// A step that converts a tensor from version `from` to `to`, which may differ in only one of
/// layout, number format and memory, or in layout and format if it is from float32 to bfloat16.
/// `queue` is that of the device if one of them is in its memory.
Step conversion_step(const std::string& name, const Shape& shape, const Version& from,
                     BufferId source, const Version& to, BufferId target, Queue* queue);

}  // namespace cafetiere
