// Layout: the orders in which a tensor's elements may lie in memory.
#pragma once

#include <cstdint>

#include "core/tensor/shape.h"

namespace cafetiere {

/// N is axis 0 (the batch), C axis 1, S the remaining (spatial) axes. With the batch innermost one
/// vector register holds the same element of 8 or 16 images, so that odd channel counts waste no
/// lane and no kernel needs a horizontal sum.
enum class Layout {
  kRowMajor,  ///< N C S: Caffe's order; parameters, inputs and whatever the user sees
  kFeatures,  ///< C S N: the transpose of (N, everything else)
  kPixels,    ///< S C N: all channels of a pixel together; what convolution and pooling want
};

inline const char* layout_name(Layout layout) {
  switch (layout) {
    case Layout::kRowMajor:
      return "NCS";
    case Layout::kFeatures:
      return "CSN";
    case Layout::kPixels:
      return "SCN";
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

/// Whether two layouts of this shape are the same bytes, so that no reorder is needed.
inline bool same_order(const Shape& shape, Layout a, Layout b) {
  if (a == b) return true;
  const Extents e(shape);
  const bool lanes_a = a != Layout::kRowMajor, lanes_b = b != Layout::kRowMajor;
  if (lanes_a && lanes_b) return e.c == 1 || e.s == 1;
  if (e.n != 1) return e.c * e.s == 1;
  return e.c == 1 || e.s == 1 || (a != Layout::kPixels && b != Layout::kPixels);
}

/// A tensor of any layout as [outer][channels][inner], inner being contiguous: the form in which
/// everything that works a channel at a time is written once for all layouts.
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
        outer = 1, inner = e.s * e.n;
        break;
      case Layout::kPixels:
        outer = e.s, inner = e.n;
        break;
    }
  }
};

}  // namespace cafetiere
