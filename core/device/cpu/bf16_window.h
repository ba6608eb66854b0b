// SPDX-License-Identifier: Apache-2.0
// Window: how a correlation in bfloat16 reads its source. Pixels of a few rows are laid out with their
// padding in one line, so that what a kernel row covers is contiguous, and outputs that follow each other
// read at equal distances, beyond the ends of rows too.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/device/cpu/channels_last.h"

namespace cafetiere::bf16 {

/// One axis. The outputs first + i * step of a class, i < count, read the source at the places
/// i * stride + shift of its taps; place 0 is source index `origin`.
struct WindowAxis {
  struct Tap {
    int64_t kernel, shift;
  };
  struct Class {
    int64_t first, count;
    std::vector<Tap> taps;  ///< by ascending shift
  };
  int64_t in, stride = 1, step = 1, origin = 0;
  std::vector<Class> classes = {};

  int64_t most_count() const;
  int64_t most_shift() const;
  /// Places that hold source elements or padding before them.
  int64_t used() const;
};

/// Forward, all outputs are of one class.
WindowAxis forward_axis(const ConvGeometry&, size_t axis);
/// Of the data gradient, those whose distance is the stride.
WindowAxis backward_axis(const ConvGeometry&, size_t axis);

/// The two axes, and how the outputs are cut into blocks: (range of panels, group, images, rows).
struct Window {
  int64_t n, group, channels;          ///< of the source, a group's
  int64_t out_channels, out_h, out_w;  ///< channels of all groups
  WindowAxis rows, cols;
  channels_last::LaneBlocks lanes;  ///< of a group's outputs: a panel of weights each
  bool backward;
  bool merged;    ///< a kernel row is one run of numbers
  bool unfolded;  ///< and so is the whole kernel: rows lie beside each other, as channels
  bool direct;    ///< the source is read where it is
  int64_t pixel;  ///< numbers of a place
  int64_t skip;   ///< source columns from a place to the next: those that no tap reads are left out
  int64_t width;  ///< places a row
  int64_t pitch;  ///< outputs from a row to the next, some of which are in the padding
  int64_t tile;   ///< rows of a class a block
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
  /// Where a place's pixel is in a row of the source, and how far it is from there to the next.
  int64_t column(int64_t place) const { return (place * skip + cols.origin) * channels * group; }
  int64_t column_step() const { return skip * channels * group; }

  /// Runs of numbers that a product sums over, and how long each is, in outputs of a pair of classes.
  int64_t runs(const WindowAxis::Class& row, const WindowAxis::Class& col) const;
  int64_t run_length(const WindowAxis::Class& col) const;
  /// The same with what fills a product's last step.
  int64_t depth(const WindowAxis::Class& col) const;
  /// Packed numbers a lane: the depths of all runs of all classes.
  int64_t packed() const;

  /// Numbers of an image's rows, laid out.
  int64_t image_size() const { return int64_t(phases.size()) * places * width * pixel; }
  std::vector<int64_t> phases;  ///< remainders of row places to the stride that occur, a part each
  int64_t places;               ///< rows of a part
  /// Where a tap of a row begins among an image's numbers.
  int64_t row_at(int64_t shift) const;

  /// Numbers that can be laid out a block and stay in the L2 cache, with those that are read beyond them.
  static constexpr int64_t kRoom = 128 << 10;
  int64_t slack() const {
    return (16 * cols.stride + std::max<int64_t>(0, -cols.origin)) * pixel + 64;
  }

 private:
  Window(const ConvGeometry&, bool backward);
  void lay_rows();
  void choose_blocks();
};

}  // namespace cafetiere::bf16
