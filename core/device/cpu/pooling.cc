// SPDX-License-Identifier: Apache-2.0
// Pooling: a pixel's values (its channels, or its channels of all images) are one long vector.
#include <algorithm>
#include <cfloat>

#include "core/device/cpu/cpu_device.h"
#include "core/device/cpu/lane_chunks.h"

namespace cafetiere {
namespace {

/// Geometry plus what the layout adds to it.
struct Pool {
  PoolGeometry g;
  int64_t images;  ///< stored one after another; 1 where they share a pixel's vector

  Pool(const PoolGeometry& g, Layout layout)
      : g(g), images(layout == Layout::kChannels ? g.n : 1) {}
  int64_t pixel() const { return g.channels * g.n / images; }  ///< floats a pixel
  int64_t in_image(int64_t i) const { return i * g.in_h * g.in_w * pixel(); }
  int64_t out_image(int64_t i) const { return i * g.out_h * g.out_w * pixel(); }
};

/// The tensor's own layout if each pixel is contiguous, the one that suits the shape if not.
Layout pixels_together(const Program& p, TensorId id, const PoolGeometry& g) {
  const Layout layout = p.layout(id);
  if (layout == Layout::kPixels || layout == Layout::kChannels) return layout;
  return g.n >= 8 && g.channels % 8 != 0 ? Layout::kPixels : Layout::kChannels;
}

void max_row(const Pool& p, int64_t oh, const float* x, float* y, float* index) {
  const int64_t pixel = p.pixel();
  const auto rows = p.g.rows(oh);
  for (int64_t ow = 0; ow < p.g.out_w; ++ow) {
    const auto cols = p.g.cols(ow);
    const int64_t out = (oh * p.g.out_w + ow) * pixel;
    for_each_chunk<kOctet>(pixel, [&](int64_t first, auto count) {
      Simd8 best = Simd8{} - FLT_MAX, chosen = Simd8{} - 1.f;
      for (int64_t h = rows.begin; h < rows.end; ++h) {
        for (int64_t w = cols.begin; w < cols.end; ++w) {
          const Simd8 in = load_octet(x + (h * p.g.in_w + w) * pixel + first, count);
          const Simd8 at = Simd8{} + float(h * p.g.in_w + w);
          chosen = in > best ? at : chosen;
          best = in > best ? in : best;
        }
      }
      store_octet(y + out + first, best, count);
      store_octet(index + out + first, chosen, count);
    });
  }
}

void average_row(const Pool& p, int64_t oh, const float* x, float* y) {
  const int64_t pixel = p.pixel();
  const auto rows = p.g.rows(oh);
  for (int64_t ow = 0; ow < p.g.out_w; ++ow) {
    const auto cols = p.g.cols(ow);
    const float divisor = float(rows.padded * cols.padded);
    float* out = y + (oh * p.g.out_w + ow) * pixel;
    for_each_chunk<kOctet>(pixel, [&](int64_t first, auto count) {
      Simd8 sum{};
      for (int64_t h = rows.begin; h < rows.end; ++h) {
        for (int64_t w = cols.begin; w < cols.end; ++w) {
          sum += load_octet(x + (h * p.g.in_w + w) * pixel + first, count);
        }
      }
      store_octet(out + first, sum / divisor, count);
    });
  }
}

/// The outputs along one axis whose windows cover input i.
struct Outputs {
  int64_t first, last;
  Outputs(int64_t i, int64_t out, int64_t kernel, int64_t stride, int64_t pad)
      : first(i + pad < kernel ? 0 : (i + pad - kernel) / stride + 1),
        last(std::min(out - 1, (i + pad) / stride)) {}
};

/// Gathers the gradient of one input row from the outputs whose windows cover it, so that rows are
/// independent of each other.
void backward_row(const Pool& p, int64_t h, const float* dy, const float* index, float* dx) {
  const int64_t pixel = p.pixel();
  const Outputs over(h, p.g.out_h, p.g.kernel_h, p.g.stride_h, p.g.pad_h);
  for (int64_t w = 0; w < p.g.in_w; ++w) {
    const Outputs across(w, p.g.out_w, p.g.kernel_w, p.g.stride_w, p.g.pad_w);
    const Simd8 at = Simd8{} + float(h * p.g.in_w + w);
    float* to = dx + (h * p.g.in_w + w) * pixel;
    for_each_chunk<kOctet>(pixel, [&](int64_t first, auto count) {
      Simd8 sum{};
      for (int64_t oh = over.first; oh <= over.last; ++oh) {
        for (int64_t ow = across.first; ow <= across.last; ++ow) {
          const int64_t out = (oh * p.g.out_w + ow) * pixel + first;
          const Simd8 diff = load_octet(dy + out, count);
          if (p.g.max)
            sum += load_octet(index + out, count) == at ? diff : Simd8{};
          else
            sum += diff * (1.f / float(p.g.rows(oh).padded * p.g.cols(ow).padded));
        }
      }
      store_octet(to + first, sum, count);
    });
  }
}

}  // namespace

void CpuDevice::pooling(Program& p, const std::string& name, const PoolGeometry& g, TensorId src,
                        TensorId dst, TensorId index) {
  const Layout layout = pixels_together(p, src, g);
  Step step;
  step.name = name;
  step.kernel = std::string("vector ") + layout_name(layout);
  step.reads = {p.read(src, layout)};
  step.writes = {p.write(dst, layout)};
  if (g.max) step.writes.push_back(p.write(index, layout));
  step.make = [=, read = step.reads[0], writes = step.writes](const Binder& at) {
    const Pool pool(g, layout);
    const float* x = at(read);
    float* y = at(writes[0]);
    float* chosen = g.max ? at(writes[1]) : nullptr;
    return Kernel{int(pool.images * g.out_h), [=](int block) {
                    const int64_t image = block / g.out_h, row = block % g.out_h;
                    const float* in = x + pool.in_image(image);
                    float* out = y + pool.out_image(image);
                    if (g.max)
                      max_row(pool, row, in, out, chosen + pool.out_image(image));
                    else
                      average_row(pool, row, in, out);
                  }};
  };
  p.step(std::move(step));
}

void CpuDevice::pooling_backward(Program& p, const std::string& name, const PoolGeometry& g,
                                 TensorId diff_dst, TensorId index, TensorId diff_src) {
  const Layout layout = pixels_together(p, g.max ? index : diff_dst, g);
  Step step;
  step.name = name;
  step.kernel = std::string("vector ") + layout_name(layout);
  step.reads = {p.read(diff_dst, layout)};
  if (g.max) step.reads.push_back(p.read(index, layout));
  step.writes = {p.write(diff_src, layout)};
  step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
    const Pool pool(g, layout);
    const float* dy = at(reads[0]);
    const float* chosen = g.max ? at(reads[1]) : nullptr;
    float* dx = at(write);
    return Kernel{int(pool.images * g.in_h), [=](int block) {
                    const int64_t image = block / g.in_h, out = pool.out_image(image);
                    backward_row(pool, block % g.in_h, dy + out, chosen ? chosen + out : nullptr,
                                 dx + pool.in_image(image));
                  }};
  };
  p.step(std::move(step));
}

}  // namespace cafetiere
