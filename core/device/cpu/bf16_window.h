// SPDX-License-Identifier: Apache-2.0
// Window: how a correlation in bfloat16 reads its source. The pixels of a few rows are laid out in
// a line with their padding, so that the pixels under a kernel row are contiguous, and consecutive
// outputs read at equal distances, even across the ends of rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/device/cpu/channels_last.h"

namespace cafetiere::bf16 {

/// One axis. Outputs first + i * step of a class, i < count, read the source at the places i *
/// stride + shift of the class's taps; place 0 is source index `origin`.
struct WindowAxis {
  struct Tap {
    int64_t kernel, shift;
  };
  struct Class {
    int64_t first, count;
    std::vector<Tap> taps;  ///< in ascending order of shift
  };
  int64_t in, stride = 1, step = 1, origin = 0;
  std::vector<Class> classes = {};

  int64_t most_count() const;
  int64_t most_shift() const;
  /// Number of places that hold source elements, or padding before them.
  int64_t used() const;
};

/// Forward: all outputs form one class.
WindowAxis forward_axis(const ConvGeometry&, size_t axis);
/// Data gradient: outputs whose distance is a multiple of the stride form a class.
WindowAxis backward_axis(const ConvGeometry&, size_t axis);

/// The two axes, and the division of the outputs into blocks: (range of panels, group, images,
/// rows).
struct Window {
  int64_t n, group, channels;          ///< of the source; `channels` per group
  int64_t out_channels, out_h, out_w;  ///< `out_channels` of all groups
  WindowAxis rows, cols;
  channels_last::LaneBlocks lanes;  ///< of a group's outputs, with a panel of weights each
  bool backward;
  bool merged;    ///< a kernel row is one contiguous run of numbers
  bool unfolded;  ///< so is the whole kernel: its rows are laid out side by side, as channels
  bool direct;    ///< the source is read in place
  int64_t pixel;  ///< numbers per place
  int64_t skip;   ///< source columns between places: columns that no tap reads are omitted
  int64_t width;  ///< places per row
  int64_t pitch;  ///< outputs from one row to the next, including some in the padding
  int64_t tile;   ///< rows of a class per block
  int64_t images, parts;

  static Window forward(const ConvGeometry&);
  static Window backward_data(const ConvGeometry&);

  int64_t blocks() const { return parts * group * image_blocks() * row_blocks(); }
  int64_t image_blocks() const { return (n + images - 1) / images; }
  int64_t row_blocks() const { return (rows.most_count() + tile - 1) / tile; }
  int64_t panels() const { return lanes.count; }

  /// Places [begin, end) of a row hold pixels, the others padding.
  int64_t begin() const { return std::max<int64_t>(0, (skip - 1 - cols.origin) / skip); }
  int64_t end() const {
    return std::max(begin(), std::min(width, (cols.in - cols.origin + skip - 1) / skip));
  }
  /// The offset of a place's pixel in a row of the source, and the distance to the next one.
  int64_t column(int64_t place) const { return (place * skip + cols.origin) * channels * group; }
  int64_t column_step() const { return skip * channels * group; }

  /// The number of runs that a product sums over, and their length, for outputs of a pair of
  /// classes.
  int64_t runs(const WindowAxis::Class& row, const WindowAxis::Class& col) const;
  int64_t run_length(const WindowAxis::Class& col) const;
  /// run_length() rounded up to whole steps of the product.
  int64_t depth(const WindowAxis::Class& col) const;
  /// Packed numbers per lane: the depths of all runs of all classes.
  int64_t packed() const;

  /// Numbers of an image's rows as laid out.
  int64_t image_size() const { return int64_t(phases.size()) * places * width * pixel; }
  std::vector<int64_t> phases;  ///< remainders of row places modulo the stride that occur, with a
                                ///< part each
  int64_t places;               ///< rows per part
  /// The offset of a row's tap within an image's numbers.
  int64_t row_at(int64_t shift) const;

  /// Numbers laid out per block, including those read beyond the end: they fit into the L2 cache.
  static constexpr int64_t kRoom = 128 << 10;
  static constexpr int64_t kMostRows = 32;  ///< of a kernel that is unfolded
  int64_t slack() const {
    return (16 * cols.stride + std::max<int64_t>(0, -cols.origin)) * pixel + 64;
  }

 private:
  Window(const ConvGeometry&, bool backward);
  void lay_rows();
  void choose_blocks();
};

}  // namespace cafetiere::bf16
