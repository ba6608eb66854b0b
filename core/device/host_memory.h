// SPDX-License-Identifier: Apache-2.0
// Large blocks of host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/base/status.h"

namespace cafetiere {

/// A block of bytes, freed automatically.
using Memory = std::shared_ptr<std::byte>;

/// Zero-filled memory, on huge pages if available, since page faults are expensive. Fails with
/// kOutOfMemory.
Result<Memory> allocate_host(int64_t bytes);

/// The same for floats, for the parameters and gradients of a net.
Result<std::shared_ptr<float>> allocate_host_floats(int64_t floats);

}  // namespace cafetiere
