// SPDX-License-Identifier: Apache-2.0
#include "core/device/cpu/cpu_device.h"

namespace cafetiere {

std::unique_ptr<Device> make_cpu_device(Precision precision) {
  return std::make_unique<CpuDevice>(precision);
}

}  // namespace cafetiere
