// Pooling: what a pixel holds (its channels, or its channels of all images) is one long vector.
#include <algorithm>
#include <cfloat>

#include "core/device/cpu/cpu_device.h"
#include "core/device/map.h"

namespace cafetiere {
namespace {

/// Geometry plus what the layout says of it.
struct Pool {
  PoolGeometry g;
  int64_t images;  ///< that lie one after another; 1 where they share a pixel's vector

  Pool(const PoolGeometry& g, Layout layout)
      : g(g), images(layout == Layout::kChannels ? g.n : 1) {}
  int64_t pixel() const { return g.channels * g.n / images; }  ///< floats a pixel
  int64_t in_image(int64_t i) const { return i * g.in_h * g.in_w * pixel(); }
  int64_t out_image(int64_t i) const { return i * g.out_h * g.out_w * pixel(); }
};

/// The tensor's own layout if its pixels lie together, the one that suits the shape if not.
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
    float* best = y + (oh * p.g.out_w + ow) * pixel;
    float* chosen = index + (oh * p.g.out_w + ow) * pixel;
    std::fill_n(best, pixel, -FLT_MAX);
    std::fill_n(chosen, pixel, -1.f);
    for (int64_t h = rows.begin; h < rows.end; ++h) {
      for (int64_t w = cols.begin; w < cols.end; ++w) {
        const float* in = x + (h * p.g.in_w + w) * pixel;
        const float at = float(h * p.g.in_w + w);
        CFT_INDEPENDENT
        for (int64_t i = 0; i < pixel; ++i) {
          const bool larger = in[i] > best[i];
          best[i] = larger ? in[i] : best[i];
          chosen[i] = larger ? at : chosen[i];
        }
      }
    }
  }
}

void average_row(const Pool& p, int64_t oh, const float* x, float* y) {
  const int64_t pixel = p.pixel();
  const auto rows = p.g.rows(oh);
  for (int64_t ow = 0; ow < p.g.out_w; ++ow) {
    const auto cols = p.g.cols(ow);
    float* sum = y + (oh * p.g.out_w + ow) * pixel;
    std::fill_n(sum, pixel, 0.f);
    for (int64_t h = rows.begin; h < rows.end; ++h) {
      for (int64_t w = cols.begin; w < cols.end; ++w) {
        const float* in = x + (h * p.g.in_w + w) * pixel;
        CFT_INDEPENDENT
        for (int64_t i = 0; i < pixel; ++i) sum[i] += in[i];
      }
    }
    const float divisor = float(rows.padded * cols.padded);
    for (int64_t i = 0; i < pixel; ++i) sum[i] /= divisor;
  }
}

/// Gathers the gradient of one input row from the outputs whose windows cover it, so that rows are
/// independent of each other.
void backward_row(const Pool& p, int64_t h, const float* dy, const float* index, float* dx) {
  const int64_t pixel = p.pixel();
  std::fill_n(dx + h * p.g.in_w * pixel, p.g.in_w * pixel, 0.f);
  const int64_t first = std::max<int64_t>(0, (h + p.g.pad_h - p.g.kernel_h) / p.g.stride_h);
  const int64_t last = std::min(p.g.out_h - 1, (h + p.g.pad_h) / p.g.stride_h);
  for (int64_t oh = first; oh <= last; ++oh) {
    const auto rows = p.g.rows(oh);
    if (h < rows.begin || h >= rows.end) continue;
    for (int64_t ow = 0; ow < p.g.out_w; ++ow) {
      const auto cols = p.g.cols(ow);
      const float* diff = dy + (oh * p.g.out_w + ow) * pixel;
      const float* from = p.g.max ? index + (oh * p.g.out_w + ow) * pixel : nullptr;
      const float scale = p.g.max ? 1.f : 1.f / float(rows.padded * cols.padded);
      for (int64_t w = cols.begin; w < cols.end; ++w) {
        float* to = dx + (h * p.g.in_w + w) * pixel;
        const float at = float(h * p.g.in_w + w);
        if (p.g.max) {
          CFT_INDEPENDENT
          for (int64_t i = 0; i < pixel; ++i) to[i] += from[i] == at ? diff[i] : 0.f;
        } else {
          CFT_INDEPENDENT
          for (int64_t i = 0; i < pixel; ++i) to[i] += diff[i] * scale;
        }
      }
    }
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
