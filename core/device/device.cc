// SPDX-License-Identifier: Apache-2.0
#include "core/device/device.h"

namespace cafetiere {

Result<Memory> Device::allocate(Space space, int64_t bytes) {
  if (space == Space::kHost) return allocate_host(bytes);
  return invalid_argument(std::string("device '") + name() + "' has no memory of its own");
}

}  // namespace cafetiere
