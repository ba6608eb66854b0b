#include "core/device/reorder.h"

#include <cstring>

#include "core/device/transpose.h"

namespace cafetiere {
namespace {

/// Row index of (channel, pixel) in a batch-innermost layout.
int64_t lane_row(Layout layout, const Extents& e, int64_t c, int64_t s) {
  return layout == Layout::kPixels ? s * e.c + c : c * e.s + s;
}

/// Between the two batch-innermost layouts: whole rows of n floats move.
Kernel permute_rows(const Extents& e, Layout from, const float* in, Layout to, float* out) {
  return {int(e.c), [=](int block) {
            const int64_t c = block;
            for (int64_t s = 0; s < e.s; ++s) {
              std::memcpy(out + lane_row(to, e, c, s) * e.n, in + lane_row(from, e, c, s) * e.n,
                          size_t(e.n) * sizeof(float));
            }
          }};
}

/// Between row-major and a batch-innermost layout: a transpose a channel.
Kernel transpose_batch(const Extents& e, Layout from, const float* in, Layout to, float* out) {
  const bool to_lanes = from == Layout::kRowMajor;
  const Layout lanes = to_lanes ? to : from;
  // In pixel order the rows of one channel are c apart; in feature order they are adjacent. With
  // one pixel the channels themselves are the rows.
  const int64_t step = lanes == Layout::kPixels ? e.c * e.n : e.n;
  const int64_t blocks = e.s == 1 ? 1 : e.c;
  return {int(blocks), [=](int block) {
            if (e.s == 1) {
              if (to_lanes)
                transpose_tiles(in, e.n, e.c, e.c, out, e.n);
              else
                transpose_tiles(in, e.c, e.n, e.n, out, e.c);
              return;
            }
            const int64_t c = block;
            const int64_t image = e.c * e.s;
            if (to_lanes) {
              transpose_tiles(in + c * e.s, e.n, e.s, image, out + lane_row(lanes, e, c, 0) * e.n,
                              step);
            } else {
              transpose_tiles(in + lane_row(lanes, e, c, 0) * e.n, e.s, e.n, step, out + c * e.s,
                              image);
            }
          }};
}

}  // namespace

Step reorder_step(const std::string& name, const Shape& shape, Layout from, BufferId source,
                  Layout to, BufferId target) {
  const Extents e(shape);
  Step step;
  step.name = name + " reorder";
  step.kernel = std::string(layout_name(from)) + " to " + layout_name(to);
  step.reads = {source};
  step.writes = {target};
  step.make = [=](const Binder& at) {
    const bool lanes = from != Layout::kRowMajor && to != Layout::kRowMajor;
    return lanes ? permute_rows(e, from, at(source), to, at(target))
                 : transpose_batch(e, from, at(source), to, at(target));
  };
  return step;
}

}  // namespace cafetiere
