// SPDX-License-Identifier: Apache-2.0
#include "core/device/ref/ref_device.h"

namespace cafetiere {

std::unique_ptr<Device> make_ref_device() { return std::make_unique<RefDevice>(); }

}  // namespace cafetiere
