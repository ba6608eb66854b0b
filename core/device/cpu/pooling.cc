// SPDX-License-Identifier: Apache-2.0
// Pooling: the values of a pixel (its channels, or its channels in all images) form one long
// vector.
#include <algorithm>

#include "core/device/cpu/bf16_max_pooling.h"
#include "core/device/cpu/cpu_device.h"
#include "core/device/cpu/lane_chunks.h"
#include "core/device/cpu/pool_pixels.h"

namespace cafetiere {
namespace {

/// The geometry, with additions for the layout.
struct Pool {
  PoolGeometry g;
  int64_t images;  ///< stored one after another; 1 if they share a pixel's vector

  Pool(const PoolGeometry& g, Layout layout)
      : g(g), images(layout == Layout::kChannels ? g.n : 1) {}
  int64_t pixel() const { return g.channels * g.n / images; }  ///< numbers per pixel
  PoolPixels pixels() const { return {g, pixel()}; }
  int64_t in_image(int64_t i) const { return i * g.in_h * g.in_w * pixel(); }
  int64_t out_image(int64_t i) const { return i * g.out_h * g.out_w * pixel(); }
};

/// The tensor's own layout if each pixel is contiguous, otherwise one that suits the shape.
Layout pixels_together(const Program& p, TensorId id, const PoolGeometry& g) {
  const Layout layout = p.layout(id);
  if (layout == Layout::kPixels || layout == Layout::kChannels) return layout;
  return g.n >= 8 && g.channels % 8 != 0 ? Layout::kPixels : Layout::kChannels;
}

/// Whether the bfloat16 row passes are used.
bool has_small_index(const PoolGeometry& g, Format format) {
  return g.max && !g.shows_index && format == Format::kBFloat16 && bf16::fits_max_pooling(g);
}

/// The version of the index for a version of the data.
Version index_version(const PoolGeometry& g, const Version& data) {
  return Version(data.layout,
                 has_small_index(g, data.format) ? Format::kBFloat16 : Format::kFloat32);
}

/// Rows per block: up to eight, which share input, but not so many that there are too few blocks.
int64_t rows_of_block(const Pool& pool, int64_t rows) {
  return std::clamp<int64_t>(pool.images * rows / 16, 1, 8);
}

/// Calls run(image, first row, end) for the bands of `rows` rows of each image.
template <class F>
Kernel by_bands(const Pool& pool, int64_t rows, const F& run) {
  const int64_t band = rows_of_block(pool, rows), bands = (rows + band - 1) / band;
  return {int(pool.images * bands), [=](int block) {
            const int64_t image = block / bands, row = block % bands * band;
            run(image, row, std::min(row + band, rows));
          }};
}

Kernel small_index_kernel(const Pool& pool, const uint16_t* x, uint16_t* y, uint16_t* place) {
  return by_bands(
      pool, pool.g.out_h,
      [=, rows = bf16::max_pool_rows().forward](int64_t image, int64_t begin, int64_t end) {
        const int64_t out = pool.out_image(image);
        rows(pool.pixels(), begin, end, x + pool.in_image(image), y + out,
             place ? place + out : nullptr);
      });
}

Kernel small_index_backward_kernel(const Pool& pool, const uint16_t* dy, const uint16_t* place,
                                   uint16_t* dx) {
  return by_bands(
      pool, pool.g.in_h,
      [=, rows = bf16::max_pool_rows().backward](int64_t image, int64_t begin, int64_t end) {
        const int64_t out = pool.out_image(image);
        rows(pool.pixels(), begin, end, dy + out, place + out, dx + pool.in_image(image));
      });
}

template <class T>
Kernel pooling_kernel(const Pool& pool, const T* x, T* y, float* index) {
  return by_bands(
      pool, pool.g.out_h, [=, rows = pool_rows<T>()](int64_t image, int64_t begin, int64_t end) {
        const T* in = x + pool.in_image(image);
        const int64_t out = pool.out_image(image);
        if (pool.g.max)
          rows.max(pool.pixels(), begin, end, in, y + out, index ? index + out : nullptr);
        else
          rows.average(pool.pixels(), begin, end, in, y + out);
      });
}

template <class T>
Kernel backward_kernel(const Pool& pool, const T* dy, const float* index, T* dx) {
  return by_bands(pool, pool.g.in_h,
                  [=, rows = pool_rows<T>()](int64_t image, int64_t begin, int64_t end) {
                    const int64_t out = pool.out_image(image);
                    T* const to = dx + pool.in_image(image);
                    if (pool.g.max)
                      rows.max_backward(pool.pixels(), begin, end, dy + out, index + out, to);
                    else
                      rows.average_backward(pool.pixels(), begin, end, dy + out, to);
                  });
}

}  // namespace

void CpuDevice::pooling(Program& p, const std::string& name, const PoolGeometry& g, TensorId src,
                        TensorId dst, TensorId index) {
  const Version version(pixels_together(p, src, g), p.format(src));
  Step step;
  step.name = name;
  step.kernel = std::string("vector ") + layout_name(version.layout);
  step.reads = {p.read(src, version)};
  step.writes = {p.write(dst, version)};
  if (g.max) step.writes.push_back(p.write(index, index_version(g, version)));
  step.optional = g.max ? 1 : 0;
  step.make = [=, read = step.reads[0], writes = step.writes](const Binder& at) {
    const Pool pool(g, version.layout);
    if (has_small_index(g, version.format)) {
      return small_index_kernel(pool, at.as<uint16_t>(read), at.as<uint16_t>(writes[0]),
                                at.as<uint16_t>(writes[1]));
    }
    float* const chosen = g.max ? at(writes[1]) : nullptr;
    return with_elements(version.format, [&]<class T>(T) {
      return pooling_kernel<T>(pool, at.as<T>(read), at.as<T>(writes[0]), chosen);
    });
  };
  p.step(std::move(step));
}

void CpuDevice::pooling_backward(Program& p, const std::string& name, const PoolGeometry& g,
                                 TensorId diff_dst, TensorId index, TensorId diff_src) {
  const Version version(pixels_together(p, g.max ? index : diff_dst, g), p.format(diff_dst));
  Step step;
  step.name = name;
  step.kernel = std::string("vector ") + layout_name(version.layout);
  step.reads = {p.read(diff_dst, version)};
  if (g.max) step.reads.push_back(p.read(index, index_version(g, version)));
  step.writes = {p.write(diff_src, version)};
  step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
    const Pool pool(g, version.layout);
    if (has_small_index(g, version.format)) {
      return small_index_backward_kernel(pool, at.as<uint16_t>(reads[0]), at.as<uint16_t>(reads[1]),
                                         at.as<uint16_t>(write));
    }
    const float* const chosen = g.max ? at(reads[1]) : nullptr;
    return with_elements(version.format, [&]<class T>(T) {
      return backward_kernel<T>(pool, at.as<T>(reads[0]), chosen, at.as<T>(write));
    });
  };
  p.step(std::move(step));
}

}  // namespace cafetiere
