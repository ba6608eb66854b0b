// SPDX-License-Identifier: Apache-2.0
#include "core/device/cpu/bf16_window.h"

#include <algorithm>
#include <utility>

#include "core/device/cpu/bf16_tiles.h"
#include "core/device/cpu/whole_pieces.h"

namespace cafetiere::bf16 {
namespace {

using channels_last::LaneBlocks;

constexpr int64_t kFewBlocks = 8;             // with fewer blocks, panels are divided too
constexpr int64_t kWeights = 640 << 10;       // per block: they fit into the L2 cache
constexpr int64_t kPositions = 2048;          // per block, if the source is read in place
constexpr int64_t kDirectNumbers = 96 << 10;  // numbers of the source in that case

/// Whether taps are consecutive, so that they read one run.
bool contiguous(const WindowAxis& axis) {
  return std::ranges::all_of(axis.classes, [](const WindowAxis::Class& c) {
    for (size_t i = 1; i < c.taps.size(); ++i) {
      if (c.taps[i].shift != c.taps[i - 1].shift + 1) return false;
    }
    return true;
  });
}

/// Whether rows of a kernel, of `run` numbers each, had better be one run than padded each.
bool unfolding_pays(int64_t run, int64_t kernel_rows) {
  constexpr double kPadding = 1.75;  // of the products; with less, unfolding takes longer
  return kernel_rows > 1 && kernel_rows <= Window::kMostRows &&
         double(rounded_up(run, kTileDepth) * kernel_rows) >
             kPadding * double(rounded_up(run * kernel_rows, kTileDepth));
}

}  // namespace

int64_t WindowAxis::most_count() const {
  return std::ranges::max_element(classes, {}, &Class::count)->count;
}

int64_t WindowAxis::most_shift() const {
  int64_t most = 0;
  for (const Class& c : classes) {
    for (const Tap& tap : c.taps) most = std::max(most, tap.shift);
  }
  return most;
}

int64_t WindowAxis::used() const {
  return std::min(in - origin, (most_count() - 1) * stride + most_shift() + 1);
}

WindowAxis forward_axis(const ConvGeometry& g, size_t axis) {
  WindowAxis a{.in = g.in[axis], .stride = g.stride[axis], .origin = -g.pad[axis]};
  a.classes = {{0, g.out[axis], {}}};
  for (int64_t k = 0; k < g.kernel[axis]; ++k) {
    a.classes[0].taps.push_back({k, k * g.dilation[axis]});
  }
  return a;
}

WindowAxis backward_axis(const ConvGeometry& g, size_t axis) {
  const int64_t in = g.in[axis], stride = g.stride[axis];
  WindowAxis a{.in = g.out[axis], .step = stride};
  bool first = true;
  for (int64_t r = 0; r < std::min(stride, in); ++r) {
    WindowAxis::Class& c =
        a.classes.emplace_back(WindowAxis::Class{r, (in - r + stride - 1) / stride, {}});
    for (int64_t k = g.kernel[axis]; k-- > 0;) {
      const int64_t scaled = r + g.pad[axis] - k * g.dilation[axis];
      if (scaled % stride != 0) continue;
      c.taps.push_back({k, scaled / stride});
      a.origin = first ? scaled / stride : std::min(a.origin, scaled / stride);
      first = false;
    }
  }
  for (WindowAxis::Class& c : a.classes) {
    for (WindowAxis::Tap& tap : c.taps) tap.shift -= a.origin;
  }
  return a;
}

Window Window::forward(const ConvGeometry& g) { return {g, false}; }
Window Window::backward_data(const ConvGeometry& g) { return {g, true}; }

Window::Window(const ConvGeometry& g, bool backward)
    : n(g.n),
      group(g.group),
      channels((backward ? g.outputs : g.channels) / g.group),
      out_channels(backward ? g.channels : g.outputs),
      out_h(backward ? g.in[0] : g.out[0]),
      out_w(backward ? g.in[1] : g.out[1]),
      rows(backward ? backward_axis(g, 0) : forward_axis(g, 0)),
      cols(backward ? backward_axis(g, 1) : forward_axis(g, 1)),
      lanes(LaneBlocks::of_bf16(out_channels / g.group)),
      backward(backward) {
  if (g.kernel_size() == 1 && g.stride[0] * g.stride[1] == 1 && g.pad[0] + g.pad[1] == 0) {
    // All pixels of all images form the rows of a single image.
    rows.in = rows.classes[0].count = out_h = n * out_h * out_w;
    n = cols.in = cols.classes[0].count = out_w = 1;
  }
  lay_rows();
  choose_blocks();
}

void Window::lay_rows() {
  skip = cols.most_shift() == 0 && cols.classes.size() == 1 ? std::exchange(cols.stride, 1) : 1;
  const int64_t kernel_rows = int64_t(rows.classes[0].taps.size());
  merged = contiguous(cols);
  unfolded = merged && rows.classes.size() == 1 &&
             unfolding_pays(channels * int64_t(cols.classes[0].taps.size()), kernel_rows);
  pixel = channels * (unfolded ? kernel_rows : 1);
  const int64_t taps = rows.most_shift() + cols.most_shift();
  direct = taps == 0 && skip == 1 && rows.stride == 1 && cols.most_count() == 1 &&
           rows.classes.size() == 1 && group == 1 && channels % kTileDepth == 0;
  // Reads beyond a row's end are in the padding before the next row or, after the last row, zeros.
  const int64_t last = (cols.most_count() - 1) * cols.stride + cols.most_shift() + 1;
  const int64_t least = std::max({cols.most_count() * cols.stride, skip > 1 ? 0 : cols.used(),
                                  last - std::max<int64_t>(0, -cols.origin)});
  width = rounded_up(least, cols.stride);
  pitch = width / cols.stride;
  phases.clear();
  for (const WindowAxis::Class& c : rows.classes) {
    for (const WindowAxis::Tap& tap : c.taps) {
      const int64_t phase = unfolded ? 0 : tap.shift % rows.stride;
      if (std::ranges::find(phases, phase) == phases.end()) phases.push_back(phase);
    }
  }
}

void Window::choose_blocks() {
  const int64_t most = rows.most_count();
  const int64_t beyond = unfolded ? 0 : rows.most_shift() / rows.stride;
  const int64_t row = int64_t(phases.size()) * width * pixel;
  const int64_t weights = packed() * lanes.heights();
  parts = std::clamp<int64_t>((weights + kWeights - 1) / kWeights, 1, lanes.count);
  images = 1;
  if (direct) {
    tile = std::clamp<int64_t>(kDirectNumbers / pixel, 2 * kTileRows, kPositions);
    tile = std::min(tile, std::max(2 * kTileRows, most / kFewBlocks)) / kTileRows * kTileRows;
    tile = std::min(tile, most);
  } else {
    tile = std::clamp<int64_t>((kRoom - slack()) / row - beyond, 1, most);
    tile = (most + row_blocks() - 1) / row_blocks();  // as evenly as possible
  }
  places = tile + beyond;
  if (tile == most && !direct) {
    images = std::clamp<int64_t>((kRoom - slack()) / image_size(), 1,
                                 std::max<int64_t>(1, n / kFewBlocks));
  }
  const int64_t blocks = group * image_blocks() * row_blocks();
  parts = std::clamp<int64_t>((kFewBlocks + blocks - 1) / blocks, parts, lanes.count);
}

int64_t Window::runs(const WindowAxis::Class& row, const WindowAxis::Class& col) const {
  if (row.taps.empty() || col.taps.empty()) return 0;
  return (unfolded ? 1 : int64_t(row.taps.size())) * (merged ? 1 : int64_t(col.taps.size()));
}

int64_t Window::run_length(const WindowAxis::Class& col) const {
  return pixel * (merged ? int64_t(col.taps.size()) : 1);
}

int64_t Window::depth(const WindowAxis::Class& col) const {
  return rounded_up(run_length(col), kTileDepth);
}

int64_t Window::packed() const {
  int64_t sum = 0;
  for (const WindowAxis::Class& row : rows.classes) {
    for (const WindowAxis::Class& col : cols.classes) sum += runs(row, col) * depth(col);
  }
  return sum;
}

int64_t Window::row_at(int64_t shift) const {
  if (unfolded) return 0;
  const auto phase = std::ranges::find(phases, shift % rows.stride) - phases.begin();
  return (phase * places + shift / rows.stride) * width * pixel;
}

}  // namespace cafetiere::bf16
