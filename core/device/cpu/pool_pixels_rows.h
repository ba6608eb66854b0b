// SPDX-License-Identifier: Apache-2.0
// The passes of pool_pixels.h for any vector width: the file of each instruction set includes this
// once, with its vector loads and stores.
#pragma once

#include <cfloat>
#include <cstdint>

#include "core/device/cpu/lane_chunks.h"
#include "core/device/cpu/pool_pixels.h"
#include "core/device/cpu/vector_pieces.h"

namespace cafetiere {
namespace {

constexpr int64_t kLine = 64;  ///< bytes per cache line

/// Prefetches `count` numbers of the next pixel while this one is computed.
template <class T>
inline void fetch(const T* from, int64_t count) {
  for (int64_t i = 0; i < count; i += kLine / int64_t(sizeof(T))) __builtin_prefetch(from + i);
}
template <class T>
inline void fetch_to_write(T* to, int64_t count) {
  for (int64_t i = 0; i < count; i += kLine / int64_t(sizeof(T))) prefetch_to_write(to + i);
}

template <class Lanes, class T>
void max_rows(const PoolPixels& p, int64_t begin, int64_t end, const T* x, T* y, float* index) {
  using V = typename Lanes::V;
  int64_t out = begin * p.g.out_w * p.pixel;
  for (int64_t oh = begin; oh < end; ++oh) {
    const auto rows = p.g.rows(oh);
    for (int64_t ow = 0; ow < p.g.out_w; ++ow, out += p.pixel) {
      const auto cols = p.g.cols(ow);
      for_each_piece<Lanes::kCount>(p.pixel, [&](int64_t first, auto vectors, auto lanes) {
        constexpr int64_t kNumbers = vectors() * Lanes::kCount;
        for (int64_t i = 0; i < p.g.stride_w; ++i) {
          fetch(x + ((rows.end - 1) * p.g.in_w + cols.end + i) * p.pixel + first, kNumbers);
        }
        fetch_to_write(y + out + p.pixel + first, kNumbers);
        if (index) fetch_to_write(index + out + p.pixel + first, kNumbers);
        V best[vectors()], chosen[vectors()];
        for (int64_t v = 0; v < vectors(); ++v) best[v] = V{} - FLT_MAX, chosen[v] = V{} - 1.F;
        for (int64_t h = rows.begin; h < rows.end; ++h) {
          for (int64_t w = cols.begin; w < cols.end; ++w) {
            const V at = V{} + float(h * p.g.in_w + w);
            const T* from = x + (h * p.g.in_w + w) * p.pixel + first;
            for (int64_t v = 0; v < vectors(); ++v) {
              const V in = Lanes::load(from + v * Lanes::kCount, lanes);
              chosen[v] = in > best[v] ? at : chosen[v];
              best[v] = in > best[v] ? in : best[v];
            }
          }
        }
        for (int64_t v = 0; v < vectors(); ++v) {
          Lanes::store(y + out + first + v * Lanes::kCount, best[v], lanes);
          if (index) Lanes::store(index + out + first + v * Lanes::kCount, chosen[v], lanes);
        }
      });
    }
  }
}

template <class Lanes, class T>
void average_rows(const PoolPixels& p, int64_t begin, int64_t end, const T* x, T* y) {
  using V = typename Lanes::V;
  y += begin * p.g.out_w * p.pixel;
  for (int64_t oh = begin; oh < end; ++oh) {
    const auto rows = p.g.rows(oh);
    for (int64_t ow = 0; ow < p.g.out_w; ++ow, y += p.pixel) {
      const auto cols = p.g.cols(ow);
      const float divisor = float(rows.padded * cols.padded);
      for_each_piece<Lanes::kCount>(p.pixel, [&](int64_t first, auto vectors, auto lanes) {
        V sum[vectors()] = {};
        for (int64_t h = rows.begin; h < rows.end; ++h) {
          for (int64_t w = cols.begin; w < cols.end; ++w) {
            const T* from = x + (h * p.g.in_w + w) * p.pixel + first;
            for (int64_t v = 0; v < vectors(); ++v) {
              sum[v] += Lanes::load(from + v * Lanes::kCount, lanes);
            }
          }
        }
        for (int64_t v = 0; v < vectors(); ++v) {
          Lanes::store(y + first + v * Lanes::kCount, sum[v] / divisor, lanes);
        }
      });
    }
  }
}

/// Gathers the gradient of each input from the outputs whose windows cover it, so that rows are
/// independent.
template <class Lanes, bool kMax, class T>
void gather_rows(const PoolPixels& p, int64_t begin, int64_t end, const T* dy, const float* index,
                 T* dx) {
  using V = typename Lanes::V;
  dx += begin * p.g.in_w * p.pixel;
  for (int64_t h = begin; h < end; ++h) {
    const auto over = p.g.covering_rows(h);
    auto coverings = p.g.coverings_of_cols();
    for (int64_t w = 0; w < p.g.in_w; ++w, dx += p.pixel) {
      const auto across = coverings.next();
      const V at = V{} + float(h * p.g.in_w + w);
      for_each_piece<Lanes::kCount>(p.pixel, [&](int64_t first, auto vectors, auto lanes) {
        constexpr int64_t kNumbers = vectors() * Lanes::kCount;
        const int64_t next = (over.last * p.g.out_w + across.last + 1) * p.pixel + first;
        fetch(dy + next, kNumbers);
        if (kMax) fetch(index + next, kNumbers);
        fetch_to_write(dx + p.pixel + first, kNumbers);
        V sum[vectors()] = {};
        for (int64_t oh = over.first; oh <= over.last; ++oh) {
          for (int64_t ow = across.first; ow <= across.last; ++ow) {
            const float share = kMax ? 1 : 1 / float(p.g.rows(oh).padded * p.g.cols(ow).padded);
            for (int64_t v = 0; v < vectors(); ++v) {
              const int64_t i = (oh * p.g.out_w + ow) * p.pixel + first + v * Lanes::kCount;
              const V diff = Lanes::load(dy + i, lanes);
              if constexpr (kMax)
                sum[v] += Lanes::load(index + i, lanes) == at ? diff : V{};
              else
                sum[v] += diff * share;
            }
          }
        }
        for (int64_t v = 0; v < vectors(); ++v) {
          Lanes::store(dx + first + v * Lanes::kCount, sum[v], lanes);
        }
      });
    }
  }
}

template <class Lanes, class T>
void max_backward_rows(const PoolPixels& p, int64_t begin, int64_t end, const T* dy,
                       const float* index, T* dx) {
  gather_rows<Lanes, true>(p, begin, end, dy, index, dx);
}
template <class Lanes, class T>
void average_backward_rows(const PoolPixels& p, int64_t begin, int64_t end, const T* dy, T* dx) {
  gather_rows<Lanes, false>(p, begin, end, dy, nullptr, dx);
}

template <class Lanes, class T>
PoolRows<T> pool_rows_of() {
  return {max_rows<Lanes, T>, average_rows<Lanes, T>, max_backward_rows<Lanes, T>,
          average_backward_rows<Lanes, T>};
}

}  // namespace
}  // namespace cafetiere
