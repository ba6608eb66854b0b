// SPDX-License-Identifier: Apache-2.0
// Layout: the orders in which a tensor's elements may be stored.
#pragma once

#include <cstdint>

#include "core/tensor/shape.h"

namespace cafetiere {

/// N is axis 0 (the batch), C axis 1, S the remaining (spatial) axes. The innermost axis fills the
/// vector registers: the batch where channels are few or odd in number, the channels where they
/// are many.
enum class Layout {
  kRowMajor,  ///< N C S: Caffe's order; parameters, inputs and whatever the user sees
  kFeatures,  ///< C S N: the transpose of (N, everything else)
  kPixels,    ///< S C N: all channels of a pixel together, the batch innermost
  kChannels,  ///< N S C: channels last, as PyTorch calls it
  kPanels,    ///< C N S: the rows of a channel of all images together
};

inline const char* layout_name(Layout layout) {
  switch (layout) {
    case Layout::kRowMajor:
      return "NCS";
    case Layout::kFeatures:
      return "CSN";
    case Layout::kPixels:
      return "SCN";
    case Layout::kChannels:
      return "NSC";
    case Layout::kPanels:
      return "CNS";
  }
  return "?";
}

/// The sizes of N, C and S of a shape; missing axes count as 1.
struct Extents {
  int64_t n, c, s;
  explicit Extents(const Shape& shape)
      : n(shape.axes() > 0 ? shape[0] : 1),
        c(shape.axes() > 1 ? shape[1] : 1),
        s(shape.axes() > 2 ? shape.count(2) : 1) {}
};

/// The stride of each axis, in floats.
struct Strides {
  int64_t n = 0, c = 0, s = 0;
  Strides(const Extents& e, Layout layout) {
    switch (layout) {
      case Layout::kRowMajor:
        n = e.c * e.s, c = e.s, s = 1;
        break;
      case Layout::kFeatures:
        n = 1, c = e.s * e.n, s = e.n;
        break;
      case Layout::kPixels:
        n = 1, c = e.n, s = e.c * e.n;
        break;
      case Layout::kChannels:
        n = e.s * e.c, c = 1, s = e.c;
        break;
      case Layout::kPanels:
        n = e.s, c = e.n * e.s, s = 1;
        break;
    }
  }
};

/// Whether two layouts of this shape are the same bytes, so that no reorder is needed.
inline bool same_order(const Shape& shape, Layout a, Layout b) {
  const Extents e(shape);
  const Strides x(e, a), y(e, b);
  return (e.n == 1 || x.n == y.n) && (e.c == 1 || x.c == y.c) && (e.s == 1 || x.s == y.s);
}

/// A tensor of any layout as [outer][channels][inner], inner being contiguous, so that operations
/// that work a channel at a time are written once for all layouts.
struct ChannelView {
  int64_t outer = 0, channels = 0, inner = 0;
  ChannelView(const Shape& shape, Layout layout) {
    const Extents e(shape);
    channels = e.c;
    switch (layout) {
      case Layout::kRowMajor:
        outer = e.n, inner = e.s;
        break;
      case Layout::kFeatures:
      case Layout::kPanels:
        outer = 1, inner = e.s * e.n;
        break;
      case Layout::kPixels:
        outer = e.s, inner = e.n;
        break;
      case Layout::kChannels:
        outer = e.n * e.s, inner = 1;
        break;
    }
  }
};

}  // namespace cafetiere
