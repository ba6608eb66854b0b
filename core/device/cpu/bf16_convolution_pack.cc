// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "core/device/cpu/bf16_convolution_plan.h"
#include "core/device/cpu/bf16_pack.h"
#include "core/device/transpose.h"

namespace cafetiere::channels_last_bf16 {
namespace {

using bf16::Window;
using channels_last::LaneBlocks;

constexpr int64_t kFewTaps = 16;  // kernels up to this size pack 8 channels at a time

/// The weights of a panel as rows of floats, [k][kernel element][lane].
struct Panel {
  const float* from;  // of the group
  int64_t ins, taps, first, lanes;
  bool backward;

  /// Writes the rows of `count` k starting at k0.
  void rows(int64_t k0, int64_t count, float* to) const {
    if (!backward) {
      return transpose_tiles(from + (first * ins + k0) * taps, lanes, count * taps, ins * taps, to,
                             lanes);
    }
    for (int64_t k = k0; k < k0 + count; ++k, to += taps * lanes) {
      const float* const row = from + (k * ins + first) * taps;
      if (taps == 1)
        std::copy_n(row, lanes, to);
      else
        transpose_tiles(row, lanes, taps, taps, to, lanes);
    }
  }
};

/// The destination of a kernel element's weights for k = 0: the row index, over all parts.
struct ElementPlace {
  int64_t element, row;
};

std::vector<ElementPlace> element_places(const WindowPlan& plan, int64_t kernel_w) {
  std::vector<ElementPlace> list;
  const Window& w = plan.w;
  for (const Part& of : plan.parts) {
    int64_t down = 0;
    for (const auto& row : of.row->taps) {
      int64_t across = 0;
      for (const auto& col : of.col->taps) {
        const int64_t columns = int64_t(of.col->taps.size());
        const int64_t run =
            (w.unfolded ? 0 : down) * (w.merged ? 1 : columns) + (w.merged ? 0 : across);
        const int64_t within =
            (w.merged ? across * w.pixel : 0) + (w.unfolded ? down * w.channels : 0);
        list.push_back({row.kernel * kernel_w + col.kernel, of.packed + run * of.depth + within});
        ++across;
      }
      ++down;
    }
  }
  return list;
}

/// Weights of a 1 x 1 kernel for the data gradient: rows in the source's order. Processes several
/// panels at a time, so that long parts of a row are read.
BufferId pack_rows(Program& p, const std::string& name, const ConvGeometry& g, TensorId weights,
                   const Window& w) {
  constexpr int64_t kPanels = 8, kAhead = 8;
  const int64_t ins = g.channels / g.group, outs = g.outputs / g.group, depth = w.packed();
  const int64_t ranges = (w.lanes.count + kPanels - 1) / kPanels;
  const auto pack = [=, lanes = w.lanes](const float* from, uint16_t* to, int block) {
    const int64_t group = block / ranges, first = block % ranges * kPanels;
    const int64_t last = std::min(lanes.count, first + kPanels);
    const float* row = from + group * outs * ins;
    for (int64_t k = 0; k < depth; k += 2, row += 2 * ins) {
      for (int64_t b = first; b < last; ++b) {
        const float *const even = row + lanes.begin(b), *const odd = even + ins;
        uint16_t* const out =
            to + (group * lanes.heights() + lanes.begin(b)) * depth + k * lanes.height(b);
        if (k >= outs) {
          std::fill_n(out, 2 * lanes.height(b), uint16_t(0));
          continue;
        }
        if (k + kAhead + 1 < outs) {
          for (int64_t l = 0; l < lanes.lanes(b); l += 16) {
            __builtin_prefetch(even + kAhead * ins + l);
            __builtin_prefetch(odd + kAhead * ins + l);
          }
        }
        bf16::pair_rows(even, k + 1 < outs ? odd : nullptr, lanes.lanes(b), lanes.height(b), out);
      }
    }
  };
  return pack_step<uint16_t>(p, name, weights, g.group * w.lanes.heights() * depth,
                             g.group * ranges, pack);
}

}  // namespace

BufferId pack_weights(Program& p, const std::string& name, const ConvGeometry& g, TensorId weights,
                      const std::shared_ptr<const WindowPlan>& plan) {
  const Window& w = plan->w;
  if (w.backward && g.kernel_size() == 1 && w.packed() > 0)
    return pack_rows(p, name, g, weights, w);
  const int64_t ins = g.channels / g.group, outs = g.outputs / g.group, taps = g.kernel_size();
  const auto places = element_places(*plan, g.kernel[1]);
  const int64_t depth = w.packed(), deep = w.channels;
  const int64_t together = taps <= kFewTaps ? 8 : 2;
  const bool pairs = deep % 2 == 0;  // otherwise a pair may span two elements
  const auto pack = [=, lanes_of = w.lanes, backward = w.backward](const float* from, uint16_t* to,
                                                                   int block) {
    const int64_t group = block / lanes_of.count, b = block % lanes_of.count;
    const int64_t lanes = lanes_of.lanes(b), height = lanes_of.height(b);
    const Panel panel{
        from + group * outs * ins * taps, ins, taps, lanes_of.begin(b), lanes, backward};
    std::array<float, std::max(8 * kFewTaps, 2 * kMostTaps) * LaneBlocks::kLanes> rows;
    uint16_t* const out = to + (group * lanes_of.heights() + lanes_of.begin(b)) * depth;
    const bool padded = !pairs || depth != deep * int64_t(places.size());
    if (padded) std::fill_n(out, depth * height, uint16_t(0));
    for (int64_t k = 0; k < deep; k += together) {
      const int64_t some = std::min(together, deep - k);
      panel.rows(k, some, rows.data());
      for (const ElementPlace& at : places) {
        for (int64_t j = 0; j < some; j += pairs ? 2 : 1) {
          const float* const row = rows.data() + (j * taps + at.element) * lanes;
          const int64_t target = at.row + k + j;
          if (pairs) {
            bf16::pair_rows(row, row + taps * lanes, lanes, height, out + target * height);
          } else {
            uint16_t* const half = out + target / 2 * 2 * height + target % 2;
            for (int64_t l = 0; l < lanes; ++l) half[2 * l] = to_bfloat16(row[l]);
          }
        }
      }
    }
  };
  return pack_step<uint16_t>(p, name, weights, g.group * w.lanes.heights() * depth,
                             g.group * w.lanes.count, pack);
}

}  // namespace cafetiere::channels_last_bf16
