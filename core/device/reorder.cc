// SPDX-License-Identifier: Apache-2.0
#include "core/device/reorder.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/device/transpose.h"

namespace cafetiere {
namespace {

/// One axis in both layouts.
struct Axis {
  int64_t size, from, to;  ///< number of elements, and their strides in floats
};

/// The three axes, sorted by their role in the copy.
struct ReorderPlan {
  Axis outer;   ///< neither layout's innermost axis
  Axis source;  ///< innermost in the source
  Axis target;  ///< innermost in the target; at `source`'s position if both agree
  bool same;    ///< the innermost axis is the same: rows are copied, nothing is transposed
};

/// The axis whose elements are adjacent in memory.
template <int64_t Axis::*stride>
size_t innermost(const std::array<Axis, 3>& axes) {
  size_t best = 0;
  for (size_t i = 1; i < axes.size(); ++i) {
    const bool nearer = axes[i].*stride < axes[best].*stride;
    const bool longer = axes[i].*stride == axes[best].*stride && axes[i].size > axes[best].size;
    if (nearer || longer) best = i;
  }
  return best;
}

ReorderPlan walk(const Shape& shape, Layout from, Layout to) {
  const Extents e(shape);
  const Strides a(e, from), b(e, to);
  const std::array<Axis, 3> axes{Axis{e.n, a.n, b.n}, Axis{e.c, a.c, b.c}, Axis{e.s, a.s, b.s}};
  const size_t source = innermost<&Axis::from>(axes), target = innermost<&Axis::to>(axes);
  const size_t other = source == target ? (source + 1) % 3 : 3 - source - target;
  const size_t middle = source == target ? (source + 2) % 3 : target;
  return {axes[other], axes[source], axes[middle], source == target};
}

constexpr int64_t kTile = 64;  // columns per block of a transposition

void copy_rows(const ReorderPlan& w, int64_t outer, const float* in, float* out) {
  for (int64_t row = 0; row < w.target.size; ++row) {
    std::memcpy(out + outer * w.outer.to + row * w.target.to,
                in + outer * w.outer.from + row * w.target.from,
                size_t(w.source.size) * sizeof(float));
  }
}

void transpose_tile(const ReorderPlan& w, int64_t outer, int64_t first, const float* in,
                    float* out) {
  transpose_tiles(in + outer * w.outer.from + first, w.target.size,
                  std::min(kTile, w.source.size - first), w.target.from,
                  out + outer * w.outer.to + first * w.source.to, w.source.to);
}

}  // namespace

Step reorder_step(const std::string& name, const Shape& shape, Layout from, BufferId source,
                  Layout to, BufferId target) {
  const ReorderPlan w = walk(shape, from, to);
  Step step;
  step.name = name + " reorder";
  step.kernel = std::string(layout_name(from)) + " to " + layout_name(to);
  step.reads = {source};
  step.writes = {target};
  step.make = [=](const Binder& at) {
    const float* in = at(source);
    float* out = at(target);
    if (w.same) {
      return Kernel{int(w.outer.size), [=](int block) { copy_rows(w, block, in, out); }};
    }
    const int64_t tiles = (w.source.size + kTile - 1) / kTile;
    return Kernel{int(w.outer.size * tiles), [=](int block) {
                    transpose_tile(w, block / tiles, block % tiles * kTile, in, out);
                  }};
  };
  return step;
}

}  // namespace cafetiere
