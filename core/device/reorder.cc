// SPDX-License-Identifier: Apache-2.0
#include "core/device/reorder.h"

#include <algorithm>
#include <array>

#include "core/device/bfloat16.h"
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

constexpr int64_t kTile = 64;    // columns per block of a transposition
constexpr int64_t kRoom = 4096;  // floats transposed before they are rounded, in the L1 cache

/// Columns per block: more if they are short, since a block of three channels would be too small.
int64_t tile_columns(const ReorderPlan& w) {
  return std::max(kTile, kRoom / std::max<int64_t>(1, w.target.size) / kTile * kTile);
}

void put(const float* from, int64_t count, float* to) { std::copy_n(from, count, to); }
void put(const float* from, int64_t count, uint16_t* to) { narrow(from, count, to); }

template <class T>
void copy_rows(const ReorderPlan& w, int64_t outer, const float* in, T* out) {
  for (int64_t row = 0; row < w.target.size; ++row) {
    put(in + outer * w.outer.from + row * w.target.from, w.source.size,
        out + outer * w.outer.to + row * w.target.to);
  }
}

void transpose_tile(const ReorderPlan& w, int64_t outer, int64_t first, const float* in,
                    float* out) {
  transpose_tiles(in + outer * w.outer.from + first, w.target.size,
                  std::min(tile_columns(w), w.source.size - first), w.target.from,
                  out + outer * w.outer.to + first * w.source.to, w.source.to);
}

/// With rounding: some rows of the source at a time.
void transpose_tile(const ReorderPlan& w, int64_t outer, int64_t first, const float* in,
                    uint16_t* out) {
  const int64_t columns = std::min(tile_columns(w), w.source.size - first);
  const int64_t most = kRoom / columns;
  alignas(64) std::array<float, kRoom> room;
  for (int64_t row = 0; row < w.target.size; row += most) {
    const int64_t rows = std::min(most, w.target.size - row);
    transpose_tiles(in + outer * w.outer.from + row * w.target.from + first, rows, columns,
                    w.target.from, room.data(), rows);
    uint16_t* const to = out + outer * w.outer.to + first * w.source.to + row;
    if (rows == w.source.to) {
      narrow(room.data(), rows * columns, to);
      continue;
    }
    for (int64_t c = 0; c < columns; ++c) {
      narrow(room.data() + c * rows, rows, to + c * w.source.to);
    }
  }
}

template <class T>
Kernel reorder_kernel(const ReorderPlan& w, const float* in, T* out) {
  if (w.same) {
    return {int(w.outer.size), [=](int block) { copy_rows(w, block, in, out); }};
  }
  const int64_t columns = tile_columns(w), tiles = (w.source.size + columns - 1) / columns;
  return {int(w.outer.size * tiles),
          [=](int block) { transpose_tile(w, block / tiles, block % tiles * columns, in, out); }};
}

}  // namespace

Step reorder_step(const std::string& name, const Shape& shape, Layout from, BufferId source,
                  Version to, BufferId target) {
  const ReorderPlan w = walk(shape, from, to.layout);
  const bool rounds = to.format == Format::kBFloat16;
  Step step;
  step.name = name + (rounds ? " convert" : " reorder");
  step.kernel = std::string(layout_name(from)) + " to " + to.name();
  step.reads = {source};
  step.writes = {target};
  step.make = [=](const Binder& at) {
    return rounds ? reorder_kernel(w, at(source), at.as<uint16_t>(target))
                  : reorder_kernel(w, at(source), at(target));
  };
  return step;
}

}  // namespace cafetiere
