// SPDX-License-Identifier: Apache-2.0
// The row passes of max pooling for any vector width: the file of each instruction set includes
// this once, with its vector loads and stores.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/device/cpu/bf16_max_pooling.h"
#include "core/device/cpu/vector_pieces.h"

namespace cafetiere::bf16 {
namespace {

inline constexpr int64_t kRowBuffer = 32'768;  ///< numbers

/// Vectors of kBytes; comparisons give a mask for ?:. (GCC drops the attribute of a `using` whose
/// size depends on a template parameter.)
template <int kBytes>
struct Vectors {
  typedef uint16_t Bits __attribute__((vector_size(kBytes)));
  typedef int16_t Key __attribute__((vector_size(kBytes)));
  typedef uint32_t Wide __attribute__((vector_size(kBytes)));
  typedef int32_t Signed __attribute__((vector_size(kBytes)));
  typedef float Float __attribute__((vector_size(kBytes)));
  static constexpr int64_t kLanes = kBytes / 2;

  /// Integers ordered like the numbers: both zeros equal, NaN below everything.
  static Key key_of(Bits x) {
    const Key magnitude = Key(x & 0x7fff), sign = Key(x) >> 15;
    const Key key = (magnitude ^ sign) - sign;
    return magnitude > 0x7f80 ? Key{} - 0x7fff : key;
  }
  static Bits number_of(Key key) {
    const Key sign = key >> 15;
    return Bits((key ^ sign) - sign) | (Bits(sign) & 0x8000);
  }

  /// Rounds like to_bfloat16(); the result is in the upper halves.
  static Wide rounded(Float sum) {
    const Wide bits = Wide(sum);
    const Wide near = bits + 0x7fff + ((bits >> 16) & 1);
    return Signed(bits & 0x7fffffff) > 0x7f800000 ? bits | 0x400000 : near;
  }
  /// Combines even and odd lanes.
  static Bits narrow(Float even, Float odd) {
    return Bits((rounded(even) >> 16) | (rounded(odd) & 0xffff0000));
  }
};

/// The keys of the input rows under the windows of an output row, for `width` numbers per pixel.
template <class Memory>
class KeyRows {
 public:
  using V = typename Memory::V;
  using Key = typename V::Key;

  KeyRows(const PoolPixels& p, const uint16_t* x, int64_t width)
      : p_(p), x_(x), width_(width), vectors_((width + V::kLanes - 1) / V::kLanes) {}

  /// Provides rows [begin, end), which must not move backwards.
  void take(int64_t begin, int64_t end) {
    for (int64_t h = std::max(begin, next_); h < end; ++h) {
      Key* to = at(h, 0);
      const uint16_t* from = x_ + h * p_.g.in_w * p_.pixel;
      for (int64_t w = 0; w < p_.g.in_w; ++w, from += p_.pixel) {
        for_each_piece<V::kLanes>(width_, [&](int64_t i, auto vectors, auto lanes) {
          for (int64_t v = 0; v < vectors(); ++v) {
            *to++ = V::key_of(Memory::load(from + i + v * V::kLanes, lanes));
          }
        });
      }
    }
    next_ = std::max(next_, end);
  }
  int64_t vectors() const { return vectors_; }  ///< per pixel
  Key* at(int64_t h, int64_t w) {
    return reinterpret_cast<Key*>(rows_) + (h % p_.g.kernel_h * p_.g.in_w + w) * vectors_;
  }

 private:
  const PoolPixels& p_;
  const uint16_t* x_;
  int64_t width_, vectors_, next_ = 0;
  alignas(64) int16_t rows_[kRowBuffer];
};

template <class Memory>
void max_row(const PoolPixels& p, int64_t oh, int64_t width, KeyRows<Memory>& keys, uint16_t* y,
             uint16_t* place) {
  using V = typename Memory::V;
  using Key = typename V::Key;
  const PoolGeometry& g = p.g;
  const auto rows = g.rows(oh);
  keys.take(rows.begin, rows.end);
  const int64_t next = keys.vectors();
  int64_t out = oh * g.out_w * p.pixel;
  for (int64_t ow = 0; ow < g.out_w; ++ow, out += p.pixel) {
    const auto cols = g.cols(ow);
    const int64_t corner = (rows.begin - oh * g.stride_h + g.pad_h) * g.kernel_w + cols.begin -
                           ow * g.stride_w + g.pad_w;
    for_each_piece<V::kLanes>(width, [&](int64_t i, auto vectors, auto lanes) {
      Key best[vectors()], chosen[vectors()];
      for (int64_t v = 0; v < vectors(); ++v) best[v] = Key{} - 0x7f80, chosen[v] = Key{} - 1;
      for (int64_t h = rows.begin, row = corner; h < rows.end; ++h, row += g.kernel_w) {
        const Key* from = keys.at(h, cols.begin) + i / V::kLanes;
        for (int64_t w = 0; w < cols.end - cols.begin; ++w, from += next) {
          const Key here = Key{} + int16_t(row + w);
          for (int64_t v = 0; v < vectors(); ++v) {
            chosen[v] = from[v] > best[v] ? here : chosen[v];
            best[v] = from[v] > best[v] ? from[v] : best[v];
          }
        }
      }
      for (int64_t v = 0; v < vectors(); ++v) {
        const int64_t to = out + i + v * V::kLanes;
        Memory::store(y + to, V::number_of(best[v]), lanes);
        if (place) Memory::store(place + to, typename V::Bits(chosen[v]), lanes);
      }
    });
  }
}

template <class Memory>
void max_rows(const PoolPixels& p, int64_t begin, int64_t end, const uint16_t* x, uint16_t* y,
              uint16_t* place) {
  constexpr int64_t kLanes = Memory::V::kLanes;
  // A pixel's vector is cut into slices, so that the rows of a window fit into the buffer.
  const int64_t slice = kRowBuffer / (p.g.kernel_h * p.g.in_w) / kLanes * kLanes;
  for (int64_t first = 0; first < p.pixel; first += slice) {
    const int64_t width = std::min(slice, p.pixel - first);
    KeyRows<Memory> keys(p, x + first, width);
    for (int64_t oh = begin; oh < end; ++oh) {
      max_row<Memory>(p, oh, width, keys, y + first, place ? place + first : nullptr);
    }
  }
}

/// `here`: the position of this input in the window of the first output.
template <class Memory>
void backward_pixel(const PoolPixels& p, const PoolGeometry::Covering& over,
                    const PoolGeometry::Covering& across, int64_t here, const uint16_t* dy,
                    const uint16_t* place, uint16_t* dx) {
  using V = typename Memory::V;
  const PoolGeometry& g = p.g;
  for_each_piece<V::kLanes>(p.pixel, [&](int64_t i, auto vectors, auto lanes) {
    typename V::Float even[vectors()] = {}, odd[vectors()] = {};
    int64_t row = here;
    for (int64_t oh = over.first; oh <= over.last; ++oh, row -= g.stride_h * g.kernel_w) {
      int64_t out = (oh * g.out_w + across.first) * p.pixel + i, at = row;
      for (int64_t ow = across.first; ow <= across.last; ++ow, out += p.pixel, at -= g.stride_w) {
        const auto wanted = typename V::Bits{} + uint16_t(at);
        for (int64_t v = 0; v < vectors(); ++v) {
          const int64_t j = out + v * V::kLanes;
          const auto diff = typename V::Wide(
              Memory::load_where(Memory::load(place + j, lanes) == wanted, dy + j, lanes));
          even[v] += typename V::Float(diff << 16);
          odd[v] += typename V::Float(diff & 0xffff0000);
        }
      }
    }
    for (int64_t v = 0; v < vectors(); ++v) {
      Memory::store(dx + i + v * V::kLanes, V::narrow(even[v], odd[v]), lanes);
    }
  });
}

/// The same for a row of inputs of which each has one window at most.
template <class Memory>
void backward_row_apart(const PoolPixels& p, int64_t h, const uint16_t* dy, const uint16_t* place,
                        uint16_t* dx) {
  using V = typename Memory::V;
  const PoolGeometry& g = p.g;
  const int64_t oh = h / g.stride_h, row = h % g.stride_h;
  const bool covered = oh < g.out_h && row < g.kernel_h;
  dy += oh * g.out_w * p.pixel, place += oh * g.out_w * p.pixel;
  for (int64_t w = 0, ow = 0; w < g.in_w; w += g.stride_w, ++ow) {
    const int64_t cols = std::min(g.stride_w, g.in_w - w);
    const int64_t hit = covered && ow < g.out_w ? std::min(cols, g.kernel_w) : 0;
    for_each_piece<V::kLanes>(p.pixel, [&](int64_t i, auto vectors, auto lanes) {
      for (int64_t v = 0; v < vectors(); ++v, i += V::kLanes) {
        uint16_t* to = dx + w * p.pixel + i;
        if (hit > 0) {
          const auto diff = typename V::Wide(Memory::load(dy + ow * p.pixel + i, lanes));
          // As a sum of one term, so that -0 and NaN come out alike.
          const auto sum = V::narrow(typename V::Float{} + typename V::Float(diff << 16),
                                     typename V::Float{} + typename V::Float(diff & 0xffff0000));
          const auto at = Memory::load(place + ow * p.pixel + i, lanes);
          for (int64_t kw = 0; kw < hit; ++kw, to += p.pixel) {
            const auto here = typename V::Bits{} + uint16_t(row * g.kernel_w + kw);
            Memory::store(to, typename V::Bits(at == here) & sum, lanes);
          }
        }
        for (int64_t kw = hit; kw < cols; ++kw, to += p.pixel) {
          Memory::store(to, typename V::Bits{}, lanes);
        }
      }
    });
  }
}

template <class Memory>
void backward_rows(const PoolPixels& p, int64_t begin, int64_t end, const uint16_t* dy,
                   const uint16_t* place, uint16_t* dx) {
  const PoolGeometry& g = p.g;
  for (int64_t h = begin; h < end; ++h) {
    const auto over = g.covering_rows(h);
    const int64_t row = h - over.first * g.stride_h + g.pad_h;
    if (g.apart()) {
      backward_row_apart<Memory>(p, h, dy, place, dx + h * g.in_w * p.pixel);
      continue;
    }
    auto coverings = g.coverings_of_cols();
    for (int64_t w = 0; w < g.in_w; ++w) {
      const auto across = coverings.next();
      const int64_t col = w - across.first * g.stride_w + g.pad_w;
      backward_pixel<Memory>(p, over, across, row * g.kernel_w + col, dy, place,
                             dx + (h * g.in_w + w) * p.pixel);
    }
  }
}

}  // namespace
}  // namespace cafetiere::bf16
