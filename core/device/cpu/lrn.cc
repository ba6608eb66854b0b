// SPDX-License-Identifier: Apache-2.0
// Local response normalisation across channels: a sliding sum over rows of contiguous elements.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/device/cpu/cpu_device.h"
#include "core/device/map.h"
#include "core/device/vector_math.h"

namespace cafetiere {
namespace {

/// Calls f with the function scale^-beta; without a power function for Caffe's usual 0.75, so that
/// loops over it vectorize.
template <class F>
void with_power(float beta, const F& f) {
  if (beta == 0.75f) {
    f([](float scale) {
      const float root = std::sqrt(scale);
      return 1.f / (root * std::sqrt(root));
    });
  } else {
    f([beta](float scale) { return vec::pow(scale, -beta); });
  }
}

constexpr int64_t kPiece = 256;    ///< of the inner dimension: sums stay in the L1 cache
constexpr int64_t kMaxRow = 1024;  ///< innermost channels that the fast form accepts

/// The layout in which the operation runs: that of src unless too many channels are innermost.
Layout layout_for(const Program& p, TensorId src) {
  const Layout layout = p.layout(src);
  const ChannelView v(p.shape(src), layout);
  return v.inner == 1 && v.channels > kMaxRow ? Layout::kFeatures : layout;
}

/// Adds to the sums of channel c at positions [i0, i1) the values of the `size` channels around it.
template <class F>
void add_window(const ChannelView& v, int64_t size, int64_t c, float* sum, int64_t i0, int64_t i1,
                const F& value) {
  const int64_t last = std::min(v.channels - 1, c + size / 2);
  for (int64_t d = std::max<int64_t>(0, c - size / 2); d <= last; ++d) {
    for (int64_t i = i0; i < i1; ++i) sum[i] += value(d * v.inner + i);
  }
}

/// The same where channels are innermost: for all of them at once, one shift at a time.
template <class F>
void add_shifted(int64_t channels, int64_t size, float* sum, const F& value) {
  for (int64_t d = -(size / 2); d <= size / 2; ++d) {
    const int64_t begin = std::max<int64_t>(0, -d), end = std::min(channels, channels - d);
    for (int64_t c = begin; c < end; ++c) sum[c] += value(c + d);
  }
}

/// Blocks over everything but the channels: pieces of the inner dimension, or runs of pixels where
/// channels are innermost. f(offset of channel 0, first, end): positions of a piece, or all channels.
struct Pieces {
  ChannelView v;
  int64_t pieces, rows;

  explicit Pieces(const ChannelView& view)
      : v(view),
        pieces((v.inner + kPiece - 1) / kPiece),
        rows(v.inner == 1 ? std::max<int64_t>(1, kMapBlock / v.channels) : 1) {}
  int blocks() const { return int((v.outer + rows - 1) / rows * pieces); }

  template <class F>
  void for_each(int block, const F& f) const {
    const int64_t first = block / pieces * rows, end = std::min(v.outer, first + rows);
    const int64_t i0 = block % pieces * kPiece;
    for (int64_t o = first; o < end; ++o) {
      f(o * v.channels * v.inner, i0, std::min(v.inner, i0 + kPiece));
    }
  }
};

}  // namespace

namespace {

/// The rows of `channels` elements, where channels are innermost: f(row) for a block of them, as floats
/// whatever the format.
template <class F>
Kernel over_pixels(const ChannelView& v, const F& f) {
  const Pieces pieces(v);
  return {pieces.blocks(), [=](int block) {
            pieces.for_each(block, [&](int64_t base, int64_t, int64_t) { f(base); });
          }};
}

/// A pixel's channels as floats: where they are, or widened.
struct Pixel {
  std::array<float, kMaxRow> room;
  const float* load(Format format, const void* tensor, int64_t base, int64_t channels) {
    return load_floats(format, tensor, base, channels, room.data());
  }
};

/// lrn() where channels are innermost, of any format.
void lrn_pixels(Program& p, const std::string& name, const LrnGeometry& g, Version version,
                TensorId src, TensorId scale, TensorId dst) {
  const ChannelView v(p.shape(src), version.layout);
  Step step;
  step.name = name;
  step.kernel = std::string("vector ") + layout_name(version.layout);
  step.reads = {p.read(src, version)};
  step.writes = {p.write(scale, version.layout), p.write(dst, version)};
  step.make = [=, read = step.reads[0], writes = step.writes](const Binder& at) {
    const void* x = at.as<void>(read);
    float* s = at(writes[0]);
    void* y = at.as<void>(writes[1]);
    return over_pixels(v, [=](int64_t base) {
      Pixel input, result;
      const float* const in = input.load(version.format, x, base, v.channels);
      float* const sum = s + base;
      std::fill_n(sum, v.channels, 0.f);
      add_shifted(v.channels, g.size, sum, [=](int64_t i) { return in[i] * in[i]; });
      with_power(g.beta, [&, k = g.k, share = g.alpha / float(g.size)](const auto& power) {
        float* const out = result.room.data();
        for (int64_t i = 0; i < v.channels; ++i) {
          sum[i] = k + share * sum[i];
          out[i] = in[i] * power(sum[i]);
        }
      });
      store_floats(version.format, result.room.data(), v.channels, y, base);
    });
  };
  p.step(std::move(step));
}

/// lrn_backward() where channels are innermost, of any format.
void lrn_pixels_backward(Program& p, const std::string& name, const LrnGeometry& g, Version version,
                         TensorId src, TensorId scale, TensorId dst, TensorId diff_dst,
                         TensorId diff_src) {
  const ChannelView v(p.shape(src), version.layout);
  Step step;
  step.name = name;
  step.kernel = std::string("vector ") + layout_name(version.layout);
  step.reads = {p.read(src, version), p.read(scale, version.layout), p.read(dst, version),
                p.read(diff_dst, version)};
  step.writes = {p.write(diff_src, version)};
  step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
    const void *x = at.as<void>(reads[0]), *y = at.as<void>(reads[2]), *dy = at.as<void>(reads[3]);
    const float* s = at(reads[1]);
    void* dx = at.as<void>(write);
    return over_pixels(v, [=](int64_t base) {
      Pixel inputs, tops, diffs, shares, sums;
      const float* const in = inputs.load(version.format, x, base, v.channels);
      const float* const top = tops.load(version.format, y, base, v.channels);
      const float* const diff = diffs.load(version.format, dy, base, v.channels);
      const float* const scale_at = s + base;
      float *const share = shares.room.data(), *const out = sums.room.data();
      for (int64_t c = 0; c < v.channels; ++c) share[c] = diff[c] * top[c] / scale_at[c];
      std::fill_n(out, v.channels, 0.f);
      add_shifted(v.channels, g.size, out, [=](int64_t c) { return share[c]; });
      const float ratio = 2.f * g.alpha * g.beta / float(g.size);
      with_power(g.beta, [&](const auto& power) {
        for (int64_t i = 0; i < v.channels; ++i) {
          out[i] = diff[i] * power(scale_at[i]) - ratio * in[i] * out[i];
        }
      });
      store_floats(version.format, out, v.channels, dx, base);
    });
  };
  p.step(std::move(step));
}

}  // namespace

void CpuDevice::lrn(Program& p, const std::string& name, const LrnGeometry& g, TensorId src,
                    TensorId scale, TensorId dst) {
  const Layout layout = layout_for(p, src);
  const ChannelView v(p.shape(src), layout);
  if (v.inner == 1) return lrn_pixels(p, name, g, {layout, p.format(src)}, src, scale, dst);
  Step step;
  step.name = name;
  step.kernel = std::string("vector ") + layout_name(layout);
  step.reads = {p.read(src, layout)};
  step.writes = {p.write(scale, layout), p.write(dst, layout)};
  step.make = [=, read = step.reads[0], writes = step.writes](const Binder& at) {
    const float* x = at(read);
    float *s = at(writes[0]), *y = at(writes[1]);
    const Pieces pieces(v);
    const auto finish = [=](int64_t begin, int64_t end) {
      with_power(g.beta, [=, k = g.k, share = g.alpha / float(g.size)](const auto& power) {
        float *const scale_at = s, *const out = y;
        const float* const in = x;
        CFT_INDEPENDENT
        for (int64_t i = begin; i < end; ++i) {
          scale_at[i] = k + share * scale_at[i];
          out[i] = in[i] * power(scale_at[i]);
        }
      });
    };
    return Kernel{pieces.blocks(), [=](int block) {
                    pieces.for_each(block, [&](int64_t base, int64_t i0, int64_t i1) {
                      const auto square = [in = x + base](int64_t i) { return in[i] * in[i]; };
                      for (int64_t c = 0; c < v.channels; ++c) {
                        float* sum = s + base + c * v.inner;
                        std::fill(sum + i0, sum + i1, 0.f);
                        add_window(v, g.size, c, sum, i0, i1, square);
                        finish(base + c * v.inner + i0, base + c * v.inner + i1);
                      }
                    });
                  }};
  };
  p.step(std::move(step));
}

void CpuDevice::lrn_backward(Program& p, const std::string& name, const LrnGeometry& g,
                             TensorId src, TensorId scale, TensorId dst, TensorId diff_dst,
                             TensorId diff_src) {
  const Layout layout = layout_for(p, src);
  const ChannelView v(p.shape(src), layout);
  if (v.inner == 1) {
    return lrn_pixels_backward(p, name, g, {layout, p.format(src)}, src, scale, dst, diff_dst,
                               diff_src);
  }
  Step step;
  step.name = name;
  step.kernel = std::string("vector ") + layout_name(layout);
  step.reads = {p.read(src, layout), p.read(scale, layout), p.read(dst, layout),
                p.read(diff_dst, layout)};
  step.writes = {p.write(diff_src, layout)};
  step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
    const float *x = at(reads[0]), *s = at(reads[1]), *y = at(reads[2]), *dy = at(reads[3]);
    float* dx = at(write);
    const Pieces pieces(v);
    const auto finish = [=](int64_t begin, int64_t end) {
      const float ratio = 2.f * g.alpha * g.beta / float(g.size);
      with_power(g.beta, [=](const auto& power) {
        float* const out = dx;
        const float *const in = x, *const scale_at = s, *const diff = dy;
        CFT_INDEPENDENT
        for (int64_t i = begin; i < end; ++i) {
          out[i] = diff[i] * power(scale_at[i]) - ratio * in[i] * out[i];
        }
      });
    };
    return Kernel{pieces.blocks(), [=](int block) {
                    pieces.for_each(block, [&](int64_t base, int64_t i0, int64_t i1) {
                      const auto share = [=](int64_t i) {
                        return dy[base + i] * y[base + i] / s[base + i];
                      };
                      for (int64_t c = 0; c < v.channels; ++c) {
                        float* sum = dx + base + c * v.inner;
                        std::fill(sum + i0, sum + i1, 0.f);
                        add_window(v, g.size, c, sum, i0, i1, share);
                        finish(base + c * v.inner + i0, base + c * v.inner + i1);
                      }
                    });
                  }};
  };
  p.step(std::move(step));
}

}  // namespace cafetiere
