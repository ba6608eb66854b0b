// SPDX-License-Identifier: Apache-2.0
// Pooling: a pixel's values (its channels, or its channels of all images) are one long vector.
#include <algorithm>
#include <array>
#include <cfloat>
#include <type_traits>

#include "core/device/cpu/bf16_max_pooling.h"
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

/// Calls f(first, octets, lanes) for pieces of a pixel: four octets at a time, so that what is computed
/// of a window is so once for all of them, then single ones, the last of which may have fewer lanes.
template <class F>
void for_each_piece(int64_t pixel, const F& f) {
  using One = std::integral_constant<size_t, 1>;
  using Four = std::integral_constant<size_t, 4>;
  constexpr std::integral_constant<int64_t, kOctet> kWhole;
  int64_t first = 0;
  for (; first + 4 * kOctet <= pixel; first += 4 * kOctet) f(first, Four(), kWhole);
  for_each_chunk<kOctet>(pixel - first,
                         [&](int64_t at, auto lanes) { f(first + at, One(), lanes); });
}

/// Has a piece of the `count` pixels brought in that the next window begins with.
template <class T>
void fetch(const T* from, int64_t count, int64_t pixel) {
  for (int64_t i = 0; i < count; ++i, from += pixel) {
    __builtin_prefetch(from);
    __builtin_prefetch(from + kCacheLine);
  }
}
/// The same of a pixel that is to be written.
template <class T>
void fetch_to_write(T* to) {
  prefetch_to_write(to);
  prefetch_to_write(to + kCacheLine);
}

template <class T>
void max_row(const Pool& p, int64_t oh, const T* x, T* y, float* index) {
  const int64_t pixel = p.pixel();
  const auto rows = p.g.rows(oh);
  for (int64_t ow = 0; ow < p.g.out_w; ++ow) {
    const auto cols = p.g.cols(ow);
    const int64_t out = (oh * p.g.out_w + ow) * pixel;
    for_each_piece(pixel, [&](int64_t first, auto octets, auto lanes) {
      fetch(x + ((rows.end - 1) * p.g.in_w + cols.end) * pixel + first, p.g.stride_w, pixel);
      fetch_to_write(y + out + pixel + first);
      fetch_to_write(index + out + pixel + first);
      std::array<Simd8, octets()> best, chosen;
      best.fill(Simd8{} - FLT_MAX), chosen.fill(Simd8{} - 1.f);
      for (int64_t h = rows.begin; h < rows.end; ++h) {
        for (int64_t w = cols.begin; w < cols.end; ++w) {
          const Simd8 at = Simd8{} + float(h * p.g.in_w + w);
          const T* from = x + (h * p.g.in_w + w) * pixel + first;
          for (size_t o = 0; o < octets(); ++o) {
            const Simd8 in = load_octet(from + int64_t(o) * kOctet, lanes);
            chosen[o] = in > best[o] ? at : chosen[o];
            best[o] = in > best[o] ? in : best[o];
          }
        }
      }
      for (size_t o = 0; o < octets(); ++o) {
        store_octet(y + out + first + int64_t(o) * kOctet, best[o], lanes);
        store_octet(index + out + first + int64_t(o) * kOctet, chosen[o], lanes);
      }
    });
  }
}

template <class T>
void average_row(const Pool& p, int64_t oh, const T* x, T* y) {
  const int64_t pixel = p.pixel();
  const auto rows = p.g.rows(oh);
  for (int64_t ow = 0; ow < p.g.out_w; ++ow) {
    const auto cols = p.g.cols(ow);
    const float divisor = float(rows.padded * cols.padded);
    T* out = y + (oh * p.g.out_w + ow) * pixel;
    for_each_piece(pixel, [&](int64_t first, auto octets, auto lanes) {
      std::array<Simd8, octets()> sum{};
      for (int64_t h = rows.begin; h < rows.end; ++h) {
        for (int64_t w = cols.begin; w < cols.end; ++w) {
          const T* from = x + (h * p.g.in_w + w) * pixel + first;
          for (size_t o = 0; o < octets(); ++o) {
            sum[o] += load_octet(from + int64_t(o) * kOctet, lanes);
          }
        }
      }
      for (size_t o = 0; o < octets(); ++o) {
        store_octet(out + first + int64_t(o) * kOctet, sum[o] / divisor, lanes);
      }
    });
  }
}

/// Gathers the gradient of one input row from the outputs whose windows cover it, so that rows are
/// independent of each other.
template <class T>
void backward_row(const Pool& p, int64_t h, const T* dy, const float* index, T* dx) {
  const int64_t pixel = p.pixel();
  const auto over = p.g.covering_rows(h);
  for (int64_t w = 0; w < p.g.in_w; ++w) {
    const auto across = p.g.covering_cols(w);
    const Simd8 at = Simd8{} + float(h * p.g.in_w + w);
    T* to = dx + (h * p.g.in_w + w) * pixel;
    for_each_piece(pixel, [&](int64_t first, auto octets, auto lanes) {
      const int64_t next = (over.last * p.g.out_w + across.last + 1) * pixel + first;
      fetch(dy + next, 1, pixel);
      if (p.g.max) fetch(index + next, 1, pixel);
      fetch_to_write(to + pixel + first);
      std::array<Simd8, octets()> sum{};
      for (int64_t oh = over.first; oh <= over.last; ++oh) {
        for (int64_t ow = across.first; ow <= across.last; ++ow) {
          const int64_t out = (oh * p.g.out_w + ow) * pixel + first;
          const float share =
              p.g.max ? 1.f : 1.f / float(p.g.rows(oh).padded * p.g.cols(ow).padded);
          for (size_t o = 0; o < octets(); ++o) {
            const int64_t i = out + int64_t(o) * kOctet;
            const Simd8 diff = load_octet(dy + i, lanes);
            if (p.g.max)
              sum[o] += load_octet(index + i, lanes) == at ? diff : Simd8{};
            else
              sum[o] += diff * share;
          }
        }
      }
      for (size_t o = 0; o < octets(); ++o) {
        store_octet(to + first + int64_t(o) * kOctet, sum[o], lanes);
      }
    });
  }
}

/// Whether it is done by rows of bfloat16.
bool has_small_index(const PoolGeometry& g, Format format) {
  return g.max && !g.shows_index && format == Format::kBFloat16 && bf16::MaxPool::fits(g);
}

/// The version of the index beside one of the data.
Version index_version(const PoolGeometry& g, const Version& data) {
  return Version(data.layout,
                 has_small_index(g, data.format) ? Format::kBFloat16 : Format::kFloat32);
}

constexpr int64_t kBand = 8;  ///< rows of a block, which share what they read

Kernel small_index_kernel(const Pool& pool, const uint16_t* x, uint16_t* y, uint16_t* place) {
  const int64_t bands = (pool.g.out_h + kBand - 1) / kBand;
  return {int(pool.images * bands), [=, run = bf16::max_pool_rows().forward,
                                     p = bf16::MaxPool{pool.g, pool.pixel()}](int block) {
            const int64_t image = block / bands, row = block % bands * kBand;
            const int64_t out = pool.out_image(image);
            run(p, row, std::min(row + kBand, p.g.out_h), x + pool.in_image(image), y + out,
                place + out);
          }};
}

Kernel small_index_backward_kernel(const Pool& pool, const uint16_t* dy, const uint16_t* place,
                                   uint16_t* dx) {
  const int64_t bands = (pool.g.in_h + kBand - 1) / kBand;
  return {int(pool.images * bands), [=, run = bf16::max_pool_rows().backward,
                                     p = bf16::MaxPool{pool.g, pool.pixel()}](int block) {
            const int64_t image = block / bands, row = block % bands * kBand;
            const int64_t out = pool.out_image(image);
            run(p, row, std::min(row + kBand, p.g.in_h), dy + out, place + out,
                dx + pool.in_image(image));
          }};
}

template <class T>
Kernel pooling_kernel(const Pool& pool, const T* x, T* y, float* chosen) {
  const int64_t rows = pool.g.out_h;
  return {int(pool.images * rows), [=](int block) {
            const int64_t image = block / rows, row = block % rows;
            const T* in = x + pool.in_image(image);
            T* out = y + pool.out_image(image);
            if (pool.g.max)
              max_row(pool, row, in, out, chosen + pool.out_image(image));
            else
              average_row(pool, row, in, out);
          }};
}

template <class T>
Kernel backward_kernel(const Pool& pool, const T* dy, const float* chosen, T* dx) {
  const int64_t rows = pool.g.in_h;
  return {int(pool.images * rows), [=](int block) {
            const int64_t image = block / rows, out = pool.out_image(image);
            backward_row(pool, block % rows, dy + out, chosen ? chosen + out : nullptr,
                         dx + pool.in_image(image));
          }};
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
