// Local response normalisation across channels: a sliding sum over rows of contiguous elements.
#include <algorithm>
#include <cmath>

#include "core/device/cpu/cpu_device.h"

namespace cafetiere {
namespace {

/// scale^-beta; Caffe's usual 0.75 without a power function.
inline float power(float scale, float beta) {
  if (beta == 0.75f) {
    const float root = std::sqrt(scale);
    return 1.f / (root * std::sqrt(root));
  }
  return std::pow(scale, -beta);
}

/// Pieces of the inner dimension short enough for the sums to stay in the first cache.
constexpr int64_t kPiece = 256;

struct Range {
  int64_t first, last;
};
Range window(int64_t c, int64_t channels, int64_t size) {
  return {std::max<int64_t>(0, c - size / 2), std::min(channels - 1, c + size / 2)};
}

}  // namespace

void CpuDevice::lrn(Program& p, const std::string& name, const LrnGeometry& g, TensorId src,
                    TensorId scale, TensorId dst) {
  const Layout layout = p.layout(src);
  const ChannelView v(p.shape(src), layout);
  Step step;
  step.name = name;
  step.kernel = std::string("vector ") + layout_name(layout);
  step.reads = {p.read(src, layout)};
  step.writes = {p.write(scale, layout), p.write(dst, layout)};
  step.make = [=, read = step.reads[0], writes = step.writes](const Binder& at) {
    const float* x = at(read);
    float *s = at(writes[0]), *y = at(writes[1]);
    const int64_t pieces = (v.inner + kPiece - 1) / kPiece;
    return Kernel{int(v.outer * pieces), [=](int block) {
                    const int64_t base = block / pieces * v.channels * v.inner;
                    const int64_t i0 = block % pieces * kPiece;
                    const int64_t i1 = std::min(v.inner, i0 + kPiece);
                    for (int64_t c = 0; c < v.channels; ++c) {
                      float* to = s + base + c * v.inner;
                      std::fill(to + i0, to + i1, 0.f);
                      const Range r = window(c, v.channels, g.size);
                      for (int64_t d = r.first; d <= r.last; ++d) {
                        const float* from = x + base + d * v.inner;
                        for (int64_t i = i0; i < i1; ++i) to[i] += from[i] * from[i];
                      }
                      const float* in = x + base + c * v.inner;
                      float* out = y + base + c * v.inner;
                      for (int64_t i = i0; i < i1; ++i) {
                        to[i] = g.k + g.alpha / float(g.size) * to[i];
                        out[i] = in[i] * power(to[i], g.beta);
                      }
                    }
                  }};
  };
  p.step(std::move(step));
}

void CpuDevice::lrn_backward(Program& p, const std::string& name, const LrnGeometry& g,
                             TensorId src, TensorId scale, TensorId dst, TensorId diff_dst,
                             TensorId diff_src) {
  const Layout layout = p.layout(src);
  const ChannelView v(p.shape(src), layout);
  Step step;
  step.name = name;
  step.kernel = std::string("vector ") + layout_name(layout);
  step.reads = {p.read(src, layout), p.read(scale, layout), p.read(dst, layout),
                p.read(diff_dst, layout)};
  step.writes = {p.write(diff_src, layout)};
  step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
    const float *x = at(reads[0]), *s = at(reads[1]), *y = at(reads[2]), *dy = at(reads[3]);
    float* dx = at(write);
    const float ratio = 2.f * g.alpha * g.beta / float(g.size);
    const int64_t pieces = (v.inner + kPiece - 1) / kPiece;
    return Kernel{int(v.outer * pieces), [=](int block) {
                    const int64_t base = block / pieces * v.channels * v.inner;
                    const int64_t i0 = block % pieces * kPiece;
                    const int64_t i1 = std::min(v.inner, i0 + kPiece);
                    for (int64_t c = 0; c < v.channels; ++c) {
                      const int64_t row = base + c * v.inner;
                      std::fill(dx + row + i0, dx + row + i1, 0.f);
                      const Range r = window(c, v.channels, g.size);
                      for (int64_t d = r.first; d <= r.last; ++d) {
                        const int64_t from = base + d * v.inner;
                        for (int64_t i = i0; i < i1; ++i) {
                          dx[row + i] += dy[from + i] * y[from + i] / s[from + i];
                        }
                      }
                      for (int64_t i = row + i0; i < row + i1; ++i) {
                        dx[i] = dy[i] * power(s[i], g.beta) - ratio * x[i] * dx[i];
                      }
                    }
                  }};
  };
  p.step(std::move(step));
}

}  // namespace cafetiere
