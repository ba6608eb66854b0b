// SPDX-License-Identifier: Apache-2.0
// Local response normalisation across channels: a sliding sum over rows of contiguous elements.
#include <algorithm>
#include <string>
#include <vector>

#include "core/device/cpu/cpu_device.h"
#include "core/device/cpu/lrn_pixels.h"
#include "core/device/cpu/lrn_power.h"
#include "core/device/map.h"

namespace cafetiere {
namespace {

constexpr int64_t kPiece = 256;  ///< of the inner dimension: sums stay in the L1 cache

/// The layout in which the operation runs: that of src, unless too many channels are innermost.
Layout layout_for(const Program& p, const LrnGeometry& g, TensorId src) {
  const Layout layout = p.layout(src);
  const ChannelView v(p.shape(src), layout);
  return v.inner == 1 && !LrnPixels::fits(g, v.channels) ? Layout::kFeatures : layout;
}

/// Adds the values of the `size` channels around channel c to its sums, at positions [i0, i1).
template <class F>
void add_window(const ChannelView& v, int64_t size, int64_t c, float* sum, int64_t i0, int64_t i1,
                const F& value) {
  const int64_t last = std::min(v.channels - 1, c + size / 2);
  for (int64_t d = std::max<int64_t>(0, c - size / 2); d <= last; ++d) {
    for (int64_t i = i0; i < i1; ++i) sum[i] += value(d * v.inner + i);
  }
}

/// Blocks over everything but the channels: f(offset of channel 0, first, end) for the positions of
/// a piece.
struct Pieces {
  ChannelView v;
  int64_t pieces;

  explicit Pieces(const ChannelView& view) : v(view), pieces((v.inner + kPiece - 1) / kPiece) {}
  int blocks() const { return int(v.outer * pieces); }

  template <class F>
  void for_each(int block, const F& f) const {
    const int64_t i0 = block % pieces * kPiece;
    f(block / pieces * v.channels * v.inner, i0, std::min(v.inner, i0 + kPiece));
  }
};

/// A step over pixels with channels innermost: pass(first number, pixels) for runs of them.
template <class MakePass>
void pixel_step(Program& p, const std::string& name, const ChannelView& v, Version version,
                const std::vector<TensorId>& reads, TensorId write, const MakePass& make_pass) {
  Step step;
  step.name = name;
  step.kernel = std::string("vector ") + layout_name(version.layout) + ", lanes are channels";
  for (TensorId id : reads) step.reads.push_back(p.read(id, version));
  step.writes = {p.write(write, version)};
  step.rows = {.count = v.outer, .width = v.channels, .reads = reads.size()};
  step.make = [=, from = step.reads, to = step.writes[0]](const Binder& at) {
    const auto rows = [=, pass = make_pass(at, from, to)](int64_t begin, int64_t end) {
      pass(begin * v.channels, end - begin);
    };
    const int64_t some = std::max<int64_t>(1, kMapBlock / v.channels);
    return Kernel{int((v.outer + some - 1) / some),
                  [=](int block) { rows(block * some, std::min(v.outer, (block + 1) * some)); },
                  rows};
  };
  p.step(std::move(step));
}

template <class T>
void lrn_pixels(Program& p, const std::string& name, const LrnPixels& of, const ChannelView& v,
                Version version, TensorId src, TensorId dst) {
  pixel_step(p, name, v, version, {src}, dst, [=](const Binder& at, const auto& from, BufferId to) {
    return [=, x = at.as<T>(from[0]), y = at.as<T>(to), pass = lrn_passes<T>().forward](
               int64_t i, int64_t pixels) { pass(of, pixels, x + i, y + i); };
  });
}

template <class T>
void lrn_pixels_backward(Program& p, const std::string& name, const LrnPixels& of,
                         const ChannelView& v, Version version, TensorId src, TensorId diff_dst,
                         TensorId diff_src) {
  pixel_step(p, name, v, version, {src, diff_dst}, diff_src,
             [=](const Binder& at, const auto& from, BufferId to) {
               return [=, x = at.as<T>(from[0]), dy = at.as<T>(from[1]), dx = at.as<T>(to),
                       pass = lrn_passes<T>().backward](int64_t i, int64_t pixels) {
                 pass(of, pixels, x + i, dy + i, dx + i);
               };
             });
}

}  // namespace

void CpuDevice::lrn(Program& p, const std::string& name, const LrnGeometry& g, TensorId src,
                    TensorId scale, TensorId dst) {
  const Layout layout = layout_for(p, g, src);
  const ChannelView v(p.shape(src), layout);
  if (v.inner == 1) {
    const Version version(layout, p.format(src));
    const auto emit =
        version.format == Format::kBFloat16 ? lrn_pixels<uint16_t> : lrn_pixels<float>;
    return emit(p, name, {g, v.channels}, v, version, src, dst);
  }
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
  const Layout layout = layout_for(p, g, src);
  const ChannelView v(p.shape(src), layout);
  if (v.inner == 1) {
    const Version version(layout, p.format(src));
    const auto emit = version.format == Format::kBFloat16 ? lrn_pixels_backward<uint16_t>
                                                          : lrn_pixels_backward<float>;
    return emit(p, name, {g, v.channels}, v, version, src, diff_dst, diff_src);
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
