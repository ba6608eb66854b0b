// SPDX-License-Identifier: Apache-2.0
// What a convolution in bfloat16 computes, and the order of its weights.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/device/cpu/bf16_window.h"
#include "core/device/program.h"

namespace cafetiere::channels_last_bf16 {

inline constexpr int64_t kTogether = 64;   ///< pixels per product; their sums stay in the L1 cache
inline constexpr int64_t kMostTaps = 256;  ///< taps per kernel

/// The outputs of a pair of classes, and their products.
struct Part {
  const bf16::WindowAxis::Class *row, *col;
  std::vector<int64_t> from;  ///< the start of each run, relative to an output's place
  std::vector<int64_t> down;  ///< the shift of each run's row
  int64_t packed;             ///< the start of the first run's weights, in numbers per lane
  int64_t depth;
  std::array<Bf16Product, 2> products;  ///< of whole panels, and of the last
};

/// How the outputs are divided into parts.
struct WindowPlan {
  bf16::Window w;
  std::vector<Part> parts;

  explicit WindowPlan(bf16::Window window) : w(std::move(window)) {
    int64_t packed = 0;
    for (const bf16::WindowAxis::Class& row : w.rows.classes) {
      for (const bf16::WindowAxis::Class& col : w.cols.classes) {
        Part& part =
            parts.emplace_back(Part{&row, &col, places(row, col), {}, packed, w.depth(col), {}});
        for (size_t i = 0; i < part.from.size() && !w.unfolded; ++i) {
          part.down.push_back(row.taps[w.merged ? i : i / col.taps.size()].shift);
        }
        packed += w.runs(row, col) * part.depth;
        for (int64_t last : {0, 1}) {
          const int64_t height = w.lanes.height(last * (w.lanes.count - 1));
          part.products[size_t(last)] = {
              height, kTogether, part.depth, height, w.cols.stride * w.pixel, height, false};
        }
      }
    }
  }
  WindowPlan(const WindowPlan&) = delete;  // parts point into it

 private:
  std::vector<int64_t> places(const bf16::WindowAxis::Class& row,
                              const bf16::WindowAxis::Class& col) const {
    std::vector<int64_t> list;
    if (w.runs(row, col) == 0) return list;
    for (const auto& down : row.taps) {
      for (const auto& across : col.taps) {
        list.push_back(w.row_at(down.shift) + across.shift * w.pixel);
        if (w.merged) break;
      }
      if (w.unfolded) break;
    }
    return list;
  }
};

/// Packs weights (outputs, channels / group, kh, kw): [group][block of lanes][row pair][lane][2].
BufferId pack_weights(Program& p, const std::string& name, const ConvGeometry& g, TensorId weights,
                      const std::shared_ptr<const WindowPlan>& plan);

}  // namespace cafetiere::channels_last_bf16
