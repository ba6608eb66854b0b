// SPDX-License-Identifier: Apache-2.0
// How the channels-last weight gradient in bfloat16 is cut: blocks of sums, and strips of pixels
// whose operands fit into the caches.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "core/device/cpu/bf16_tiles.h"
#include "core/device/cpu/channels_last_bf16_unfold.h"
#include "core/device/cpu/channels_last_weights.h"
#include "core/device/cpu/whole_pieces.h"

namespace cafetiere::channels_last {

/// Source channels per block; fewer if each is used for many sums, so that blocks have more lanes.
inline constexpr int64_t kMostChannels = 128, kTapChannels = 96;
inline constexpr int64_t kSourceSize = 64 << 10;  ///< numbers of the rearranged source: fit into L2
/// Pixels per product; fewer if the products of all kernel elements read the same ones, which then
/// stay in the L1 cache.
inline constexpr int64_t kMostPixels = 800, kTapPixels = 320;
inline constexpr int64_t kMostRuns = 16;  ///< images of a strip that are summed one by one
/// Numbers of the rearranged source that may be written beyond a row.
inline constexpr int64_t kOverrun = channels_last_bf16::RowUnfolder::kOverrun;

/// One axis: kernel element k reads padded source o * stride + k * dilation for output o. Sources
/// are stored by remainder modulo the stride, one phase each, so that outputs read neighbours.
struct Axis {
  int64_t stride, pad, in, out;
  std::vector<int64_t> phases;             // remainders that occur
  std::vector<std::array<int64_t, 2>> at;  // per kernel element: index of its phase, and shift
  int64_t most_shift = 0;

  Axis(const ConvGeometry& g, size_t i)
      : stride(g.stride[i]), pad(g.pad[i]), in(g.in[i]), out(g.out[i]) {
    for (int64_t k = 0; k < g.kernel[i]; ++k) {
      const int64_t phase = k * g.dilation[i] % stride, shift = k * g.dilation[i] / stride;
      const auto known = std::ranges::find(phases, phase);
      at.push_back({known - phases.begin(), shift});
      if (known == phases.end()) phases.push_back(phase);
      most_shift = std::max(most_shift, shift);
    }
  }
  /// The source index of a place in a phase; -1 in the padding.
  int64_t source(size_t phase, int64_t place) const {
    const int64_t index = place * stride + phases[phase] - pad;
    return index >= 0 && index < in ? index : -1;
  }
  /// The places per line that outputs read; with stride 1, the padding after a line is that
  /// before the next one.
  int64_t places() const {
    const int64_t all = out + most_shift;
    return stride > 1 ? all : std::max({out, std::min(all, pad + in), all - pad});
  }
};

/// The numbers per channel of the rearranged source for a single output pixel.
inline int64_t least_size(const Axis& rows, const Axis& cols) {
  return int64_t(rows.phases.size() * cols.phases.size()) * (rows.most_shift + 1) *
             (cols.most_shift + 1) +
         bf16::kTileDepth;
}

inline int64_t most_channels(const Axis& rows, const Axis& cols, bool unfolded) {
  const int64_t fit = kSourceSize / least_size(rows, cols) / bf16::kTileRows * bf16::kTileRows;
  const bool taps = rows.at.size() * cols.at.size() > 1 && !unfolded;
  return std::clamp(fit, bf16::kTileRows, taps ? kTapChannels : kMostChannels);
}

/// The blocks of sums, and strips of output pixels: whole images, or rows and columns of one.
struct Strips : SumBlocks {
  Axis rows, cols;
  Axis pair_rows, pair_cols;      // of the operand in pairs
  int64_t images, height, width;  // output rows and columns per strip
  int64_t lines, pitch;           // rows and columns stored: the distances between images and rows
  bool apart;  // the sums of an image's pixels end with it, without the rows between images
  std::optional<channels_last_bf16::RowLayout> unfolded_row;  // of the rows that are unfolded first

  Strips(const ConvGeometry& g, const Axis& down, const Axis& across, const ConvGeometry& pairs,
         const std::optional<ConvGeometry>& folded = {})
      : Strips(g, down, across, pairs, folded, most_channels(down, across, folded.has_value())) {}

  int64_t phases() const { return int64_t(rows.phases.size() * cols.phases.size()); }
  /// Elements of a phase, and of a channel including reads of products beyond it.
  int64_t phase_size() const { return images * lines * pitch; }
  int64_t channel_size = 0;
  /// Places of an image that is summed on its own, in whole steps.
  int64_t run(int64_t high, int64_t wide) const {
    return rounded_up((high - 1) * pitch + wide, bf16::kTileDepth);
  }

 private:
  static constexpr int64_t kTogether = 2 * bf16::kTileRows;

  Strips(const ConvGeometry& g, const Axis& down, const Axis& across, const ConvGeometry& pairs,
         const std::optional<ConvGeometry>& folded, int64_t most_sources)
      : SumBlocks(g, LaneBlocks::of_bf16(g.outputs / g.group), most_sources,
                  most_sources < kTogether ? 1 : kTogether),
        rows(down),
        cols(across),
        pair_rows(pairs, 0),
        pair_cols(pairs, 1),
        unfolded_row(folded) {
    cut_into(c.n, c.out_h, c.out_w);
    const int64_t most = c.kernel_size() > 1 ? kTapPixels : kMostPixels;
    apart = run(c.out_h, c.out_w) < lines * pitch;
    images = std::clamp<int64_t>(most / (apart ? run(c.out_h, c.out_w) : lines * pitch), 1, c.n);
    if (apart) images = std::min(images, kMostRuns);
    height = std::clamp<int64_t>(most / pitch, 1, c.out_h);
    width = std::min(c.out_w, most - cols.most_shift);
    cut_into(images, height, width);
    while (too_large()) {
      if (images > 1)
        cut_into(images - 1, height, width);
      else if (height > 1)
        cut_into(1, height - 1, width);
      else
        cut_into(1, 1, width - 1);
    }
    cut_into(alike_pieces((c.n + parts - 1) / parts, images), alike_pieces(c.out_h, height),
             alike_pieces(c.out_w, width));
  }

  void cut_into(int64_t some, int64_t high, int64_t wide) {
    images = some, height = high, width = wide;
    pitch = width == c.out_w ? cols.places() : width + cols.most_shift;
    lines = height == c.out_h ? rows.places() : height + rows.most_shift;
    const int64_t last = (images - 1) * lines + height - 1 + rows.most_shift;
    const int64_t read = last * pitch + width + cols.most_shift + bf16::kTileDepth;
    channel_size = phases() * phase_size() + std::max(kOverrun, read - phase_size());
  }
  bool too_large() const {
    int64_t channels = 0;
    for (int64_t r = 0; r < sources; ++r) channels = std::max(channels, source(r + 1) - source(r));
    return rounded_up(channels, bf16::kTileRows) * channel_size > kSourceSize;
  }
};

}  // namespace cafetiere::channels_last
