// SPDX-License-Identifier: Apache-2.0
#include "core/device/convert.h"

#include <algorithm>

#include "core/base/bfloat16.h"
#include "core/device/map.h"
#include "core/device/reorder.h"

namespace cafetiere {
namespace {

/// Calls f(first, count) for each block of `count` elements.
template <class F>
Kernel over_elements(int64_t count, F f) {
  return {map_blocks(count), [=](int block) {
            const int64_t begin = block * kMapBlock;
            f(begin, std::min(kMapBlock, count - begin));
          }};
}

void make_format_change(Step& step, int64_t count, BufferId source, Format to, BufferId target) {
  step.name += " convert";
  step.make = [=](const Binder& at) {
    if (to == Format::kBFloat16) {
      const float* in = at(source);
      auto* out = at.as<uint16_t>(target);
      return over_elements(count, [=](int64_t first, int64_t n) {
        narrow_bfloat16(in + first, size_t(n), out + first);
      });
    }
    const auto* in = at.as<const uint16_t>(source);
    float* out = at(target);
    return over_elements(count, [=](int64_t first, int64_t n) {
      widen_bfloat16(in + first, size_t(n), out + first);
    });
  };
}

}  // namespace

Step conversion_step(const std::string& name, const Shape& shape, const Version& from,
                     BufferId source, const Version& to, BufferId target) {
  if (from.format == to.format) {
    return reorder_step(name, shape, from.layout, source, to.layout, target);
  }
  Step step;
  step.name = name;
  step.kernel = from.name() + " to " + to.name();
  step.reads = {source};
  step.writes = {target};
  make_format_change(step, shape.count(), source, to.format, target);
  return step;
}

}  // namespace cafetiere
