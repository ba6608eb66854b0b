// SPDX-License-Identifier: Apache-2.0
// The host's memory in large pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/base/status.h"

namespace cafetiere {

/// A block of bytes that frees itself.
using Memory = std::shared_ptr<std::byte>;

/// Zero-filled memory on huge pages where the system has them: page faults are expensive. Fails
/// with kOutOfMemory.
Result<Memory> allocate_host(int64_t bytes);

/// The same for floats: the parameters and gradients of a net.
Result<std::shared_ptr<float>> allocate_host_floats(int64_t floats);

}  // namespace cafetiere
