// SPDX-License-Identifier: Apache-2.0
// The geometry of windowed operations: convolution and pooling.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/shape.h"

namespace cafetiere {

/// A convolution, possibly grouped and dilated, over any number of spatial axes. src is (n,
/// channels, in...), weights (outputs, channels / group, kernel...), dst (n, outputs, out...).
struct ConvGeometry {
  int64_t n = 0, channels = 0, outputs = 0, group = 1;
  std::vector<int64_t> in, out, kernel, stride, pad, dilation;

  int spatial() const { return static_cast<int>(in.size()); }
  static int64_t product(const std::vector<int64_t>& v) {
    int64_t p = 1;
    for (int64_t x : v) p *= x;
    return p;
  }
  int64_t in_pixels() const { return product(in); }
  int64_t out_pixels() const { return product(out); }
  int64_t kernel_size() const { return product(kernel); }
  /// A multiply-add counts as two; padding is ignored.
  double flops() const {
    return 2.0 * double(n) * double(outputs) * double(out_pixels()) * double(channels / group) *
           double(kernel_size());
  }
};

/// y[n][o] = sum_k x[n][k] w[o][k]; `transposed` weights are stored (k, o).
struct InnerProductGeometry {
  int64_t n = 0, k = 0, outputs = 0;
  bool transposed = false;
  int64_t inner = 1;     ///< consecutive rows of x per row of the batch, such as tokens
  bool repeats = false;  ///< the same weights are used repeatedly, as in the steps of a sequence
  double flops() const { return 2.0 * double(n) * double(k) * double(outputs); }
};

/// Max or average pooling over two spatial axes, (n, channels, in_h, in_w) to (.., out_h, out_w).
struct PoolGeometry {
  bool max = true;
  bool shows_index = false;  ///< the chosen positions are read by more than the gradient
  int64_t n = 0, channels = 0;
  int64_t in_h = 0, in_w = 0, out_h = 0, out_w = 0;
  int64_t kernel_h = 0, kernel_w = 0, stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0;

  /// The window of an output along one axis, clipped to the image, and its size clipped only to the
  /// padded image (the divisor of an average counts padding, but nothing beyond it).
  struct Window {
    int64_t begin, end, padded;
  };
  static Window window(int64_t o, int64_t in, int64_t kernel, int64_t stride, int64_t pad) {
    int64_t begin = o * stride - pad;
    int64_t end = begin + kernel < in + pad ? begin + kernel : in + pad;
    const int64_t padded = end > begin ? end - begin : 1;  // an empty window averages to 0
    if (begin < 0) begin = 0;
    if (end > in) end = in;
    return {begin, end > begin ? end : begin, padded};
  }
  Window rows(int64_t oh) const { return window(oh, in_h, kernel_h, stride_h, pad_h); }
  Window cols(int64_t ow) const { return window(ow, in_w, kernel_w, stride_w, pad_w); }

  /// The outputs along one axis whose windows cover input i: none if first > last.
  struct Covering {
    int64_t first, last;
  };
  static Covering covering(int64_t i, int64_t out, int64_t kernel, int64_t stride, int64_t pad) {
    const int64_t last = (i + pad) / stride;
    return {i + pad < kernel ? 0 : (i + pad - kernel) / stride + 1, last < out ? last : out - 1};
  }
  Covering covering_rows(int64_t h) const { return covering(h, out_h, kernel_h, stride_h, pad_h); }

  /// The coverings of inputs 0, 1, 2, ... along one axis, without a division for each.
  class Coverings {
   public:
    Coverings(int64_t out, int64_t kernel, int64_t stride, int64_t pad)
        : now_(covering(0, out, kernel, stride, pad)),
          most_(out - 1),
          stride_(stride),
          first_in_(now_.first == 0 ? kernel - pad : stride - (pad - kernel) % stride),
          last_in_(stride - pad % stride) {
      now_.last = pad / stride;
    }
    Covering next() {
      const Covering here{now_.first, now_.last < most_ ? now_.last : most_};
      if (--first_in_ == 0) ++now_.first, first_in_ = stride_;
      if (--last_in_ == 0) ++now_.last, last_in_ = stride_;
      return here;
    }

   private:
    Covering now_;
    int64_t most_, stride_;
    int64_t first_in_, last_in_;  // inputs until they grow
  };
  Coverings coverings_of_cols() const { return {out_w, kernel_w, stride_w, pad_w}; }
  /// Whether each input is covered by a single window at most.
  bool apart() const {
    return stride_h >= kernel_h && stride_w >= kernel_w && pad_h == 0 && pad_w == 0;
  }
};

/// Local response normalisation across channels:
/// y = x (k + alpha / size * sum over `size` neighbouring channels of x^2)^-beta.
struct LrnGeometry {
  int64_t size = 5;
  float alpha = 1, beta = 0.75f, k = 1;
};

/// Self-attention of `heads` heads over `tokens` tokens: the row of a token has 3 heads * width
/// floats: queries, keys and values, a third each; the outputs of a token are a row of heads *
/// width.
struct AttentionGeometry {
  int64_t n = 0, tokens = 0, heads = 0, width = 0;
  bool causal = false;  ///< a token attends only to itself and earlier tokens

  int64_t features() const { return heads * width; }
  int64_t pairs() const { return n * heads; }
  /// For the forward pass; a multiply-add counts as two. The backward pass has 5/2 as many.
  double flops() const { return 4.0 * double(pairs()) * double(tokens * tokens) * double(width); }
};

}  // namespace cafetiere
