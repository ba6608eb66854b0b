// SPDX-License-Identifier: Apache-2.0
// Common code of the forward steps of convolutions and inner products.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/device/program.h"

namespace cafetiere {

/// A product's step without `make`. `operands`: the buffers of its two factors, in the order in
/// which they were requested; the bias, unless kNoTensor, becomes reads[2]. The step writes `dst`
/// in version `to`.
inline Step biased_step(Program& p, std::string name, std::string kernel, double flops,
                        std::vector<BufferId> operands, TensorId bias, TensorId dst, Version to) {
  Step step;
  step.name = std::move(name);
  step.kernel = std::move(kernel);
  step.flops = flops;
  step.reads = std::move(operands);
  if (bias != kNoTensor) step.reads.push_back(p.read(bias, Layout::kRowMajor));
  step.writes = {p.write(dst, to)};
  return step;
}

}  // namespace cafetiere
