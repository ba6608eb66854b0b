// SPDX-License-Identifier: Apache-2.0
#include "core/device/convert.h"

#include <algorithm>

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
      return over_elements(count,
                           [=](int64_t first, int64_t n) { narrow(in + first, n, out + first); });
    }
    const auto* in = at.as<const uint16_t>(source);
    float* out = at(target);
    return over_elements(count,
                         [=](int64_t first, int64_t n) { widen(in + first, n, out + first); });
  };
}

void make_copy(Step& step, Space to_space, int64_t bytes, BufferId source, BufferId target,
               Queue* queue) {
  step.name += " copy";
  step.kernel = to_space == Space::kDevice ? "host to device" : "device to host";
  step.space = Space::kDevice;
  step.make = [=](const Binder& at) {
    const void* from = at.as<void>(source);
    void* to = at.as<void>(target);
    return Kernel{1, [=](int) { queue->copy(to, from, bytes); }};
  };
}

}  // namespace

void store_floats(Format format, const float* from, int64_t count, void* tensor, int64_t first) {
  if (format == Format::kFloat32)
    std::copy_n(from, count, static_cast<float*>(tensor) + first);
  else
    narrow(from, count, static_cast<uint16_t*>(tensor) + first);
}

const float* load_floats(Format format, const void* tensor, int64_t first, int64_t count,
                         float* room) {
  if (format == Format::kFloat32) return static_cast<const float*>(tensor) + first;
  widen(static_cast<const uint16_t*>(tensor) + first, count, room);
  return room;
}

Step conversion_step(const std::string& name, const Shape& shape, const Version& from,
                     BufferId source, const Version& to, BufferId target, Queue* queue) {
  const bool same_layout = same_order(shape, from.layout, to.layout);
  if (from.space == to.space && (from.format == to.format || !same_layout)) {
    return reorder_step(name, shape, from.layout, source, to, target);
  }
  Step step;
  step.name = name;
  step.kernel = from.name() + " to " + to.name();
  step.reads = {source};
  step.writes = {target};
  if (from.space == to.space) {
    make_format_change(step, shape.count(), source, to.format, target);
  } else {
    make_copy(step, to.space, shape.count() * format_size(to.format), source, target, queue);
  }
  return step;
}

}  // namespace cafetiere
