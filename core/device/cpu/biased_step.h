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

/// Where and how a product writes its results: as a part, plus `addend` if given, then a ReLU if
/// `relu`. With an addend, which has the version of the result, the part is the whole.
struct Place : Part {
  BufferId addend;
  bool relu;
};

/// Sets all forms of a step that writes `channels` channels, followed by a ReLU if `relu`:
/// make(Binder, Place) returns its kernel.
template <class Make>
void offer_places(Step& step, int64_t channels, bool relu, Make make) {
  step.make = [=, write = step.writes[0]](const Binder& at) {
    return make(at, Place{{write, 0, channels}, kNoBuffer, relu});
  };
  step.make_part = [=](const Binder& at, const Part& part) {
    return make(at, Place{part, kNoBuffer, relu});
  };
  if (relu) return;  // a sum would come after it
  step.make_ending = [=](const Binder& at, const Ending& ending) {
    return make(at, Place{{ending.result, 0, channels}, ending.addend, ending.relu});
  };
}

}  // namespace cafetiere
