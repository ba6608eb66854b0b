// Pooling over pixel-order tensors: all channels and images of a pixel are one long vector.
#include <algorithm>
#include <cfloat>

#include "core/device/cpu/cpu_device.h"
#include "core/device/map.h"

namespace cafetiere {
namespace {

/// Geometry plus the length of a pixel's vector.
struct Pool {
  PoolGeometry g;
  int64_t pixel() const { return g.channels * g.n; }
};

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
  Step step;
  step.name = name;
  step.kernel = "vector SCN";
  step.reads = {p.read(src, Layout::kPixels)};
  step.writes = {p.write(dst, Layout::kPixels)};
  if (g.max) step.writes.push_back(p.write(index, Layout::kPixels));
  step.make = [=, read = step.reads[0], writes = step.writes](const Binder& at) {
    const Pool pool{g};
    const float* x = at(read);
    float* y = at(writes[0]);
    float* chosen = g.max ? at(writes[1]) : nullptr;
    return Kernel{int(g.out_h), [=](int block) {
                    if (g.max)
                      max_row(pool, block, x, y, chosen);
                    else
                      average_row(pool, block, x, y);
                  }};
  };
  p.step(std::move(step));
}

void CpuDevice::pooling_backward(Program& p, const std::string& name, const PoolGeometry& g,
                                 TensorId diff_dst, TensorId index, TensorId diff_src) {
  Step step;
  step.name = name;
  step.kernel = "vector SCN";
  step.reads = {p.read(diff_dst, Layout::kPixels)};
  if (g.max) step.reads.push_back(p.read(index, Layout::kPixels));
  step.writes = {p.write(diff_src, Layout::kPixels)};
  step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
    const Pool pool{g};
    const float* dy = at(reads[0]);
    const float* chosen = g.max ? at(reads[1]) : nullptr;
    float* dx = at(write);
    return Kernel{int(g.in_h), [=](int block) { backward_row(pool, block, dy, chosen, dx); }};
  };
  p.step(std::move(step));
}

}  // namespace cafetiere
