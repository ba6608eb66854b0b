// SPDX-License-Identifier: Apache-2.0
// Element-wise operations, written once as a functor and compiled for all layouts. The program's
// device determines whose memory they work in.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <utility>

#include "core/device/bfloat16.h"
#include "core/device/device.h"
#include "core/device/wide_map.h"

/// States that the iterations of the next loop are independent: input and output may be the same
/// memory, but only at the same index.
#define CFT_INDEPENDENT _Pragma("GCC ivdep")

namespace cafetiere {

inline constexpr int64_t kMapBlock = 1 << 14;  ///< floats per block; fixed, so that blocks depend
                                               ///< on the shape only

inline int map_blocks(int64_t count) { return int((count + kMapBlock - 1) / kMapBlock); }

/// Calls f(begin, end) for a block of kMapBlock elements.
template <class F>
void for_map_block(int block, int64_t count, const F& f) {
  f(block * kMapBlock, std::min(count, (block + 1) * kMapBlock));
}

/// Elements of a tensor as floats: a pointer into the tensor, or to `room` after widening.
const float* load_floats(Format format, const void* tensor, int64_t first, int64_t count,
                         float* room);

/// Stores floats as elements [first, first + count) of a tensor, rounding to its format.
void store_floats(Format format, const float* from, int64_t count, void* tensor, int64_t first);

/// Element i of a tensor.
inline float number(Format format, const void* tensor, int64_t i) {
  return format == Format::kFloat32 ? static_cast<const float*>(tensor)[i]
                                    : from_bfloat16(static_cast<const uint16_t*>(tensor)[i]);
}
inline void put_number(Format format, float value, void* tensor, int64_t i) {
  if (format == Format::kFloat32)
    static_cast<float*>(tensor)[i] = value;
  else
    static_cast<uint16_t*>(tensor)[i] = flushed_bfloat16(value);
}

/// Calls f(inputs, output, first, count) for pieces of the elements [begin, end); the addresses are
/// those of the piece's first element, as floats. Other formats are widened and rounded piece by
/// piece, in buffers that fit into the L1 cache.
template <size_t N, class F>
void as_floats(Format format, const std::array<const void*, N>& in, void* out, int64_t begin,
               int64_t end, const F& f) {
  constexpr int64_t kPiece = 512;
  const bool direct = format == Format::kFloat32;
  std::array<float, kPiece> rooms[N + 1];
  const int64_t piece = direct ? end - begin : kPiece;
  for (int64_t first = begin; first < end; first += piece) {
    const int64_t count = std::min(piece, end - first);
    std::array<const float*, N> from;
    for (size_t i = 0; i < N; ++i)
      from[i] = load_floats(format, in[i], first, count, rooms[i].data());
    float* const to = direct ? static_cast<float*>(out) + first : rooms[N].data();
    f(from, to, first, count);
    if (!direct) narrow(to, count, static_cast<uint16_t*>(out) + first);
  }
}

/// Tensors of numbers in memory, bfloat16 if not stated, starting at an element.
template <class T = uint16_t, size_t N>
std::array<const T*, N> numbers(const std::array<const void*, N>& tensors, int64_t first) {
  std::array<const T*, N> at;
  for (size_t i = 0; i < N; ++i) at[i] = static_cast<const T*>(tensors[i]) + first;
  return at;
}

/// The rows of an element-wise step on tensors of this shape and layout.
inline Rows element_rows(const Shape& shape, Layout layout, size_t reads) {
  const ChannelView view(shape, layout);
  if (view.inner == 1) return {.count = view.outer, .width = view.channels, .reads = reads};
  return {.count = shape.count(), .reads = reads};
}

/// Writes a gradient value according to Caffe's accumulation rule.
inline void put(float* gradient, float value, bool add) {
  *gradient = add ? *gradient + value : value;
}

/// Whether a functor takes longer to compute than memory takes to deliver its inputs.
template <class F>
inline constexpr bool is_costly = requires {
  requires F::kCostly;
};

/// The rule of a functor, if it has one.
template <class F>
Rule rule_of(const F& f) {
  if constexpr (requires { f.rule(); }) {
    return f.rule();
  } else {
    return Rule::kOther;
  }
}

/// out[i] = f(in[i]...). All tensors have the same number of elements; the layout and format are
/// those of the first input. A costly f is compiled for wide vectors, too.
template <class F, class... In>
void map(Program& p, std::string name, F f, TensorId out, In... in) {
  const std::array<TensorId, sizeof...(In)> inputs{in...};
  const Layout layout = p.layout(inputs[0]);
  const int64_t count = p.shape(out).count();
  Step step;
  step.name = std::move(name);
  step.kernel = std::string("map ") + layout_name(layout);
  step.space = p.space_of(step);
  const Format format = p.format(inputs[0]);
  const Version version(layout, format, step.space);
  for (TensorId id : inputs) step.reads.push_back(p.read(id, version));
  step.writes = {p.write(out, version)};
  step.in_place = sizeof...(In);
  step.costly = is_costly<F>;
  step.rule = rule_of(f);
  step.rows = element_rows(p.shape(out), layout, sizeof...(In));
  step.make = [=, reads = step.reads, write = step.writes[0],
               width = step.rows.width](const Binder& at) {
    std::array<const void*, sizeof...(In)> src;
    for (size_t i = 0; i < src.size(); ++i) src[i] = at.as<void>(reads[i]);
    void* dst = at.as<void>(write);
    const auto piece = [=](const std::array<const float*, sizeof...(In)>& src_at, float* dst_at,
                           int64_t, int64_t some) {
      // Local copies: the compiler must assume that dst may alias captured variables.
      const F local = f;
      float* const out_at = dst_at;
      const auto in_at = src_at;
      [&]<size_t... I>(std::index_sequence<I...>) {
        CFT_INDEPENDENT
        for (int64_t i = 0; i < some; ++i) out_at[i] = local(in_at[I][i]...);
      }
      (std::index_sequence_for<In...>{});
    };
    const bool wide = format == Format::kBFloat16 && has_wide_map();
    const bool wide_floats = format == Format::kFloat32 && has_wide_vectors(instruction_set());
    const auto elements = [=](int64_t begin, int64_t end) {
      if constexpr (is_costly<F>) {
        if (wide_floats) {
          return wide_map(numbers<float>(src, begin), static_cast<float*>(dst) + begin, end - begin,
                          f);
        }
      }
      if (!wide) return as_floats(format, src, dst, begin, end, piece);
      const auto at_once = [=](const std::array<float, sizeof...(In)>& values, int64_t) {
        return std::apply(f, values);
      };
      wide_map(numbers(src, begin), static_cast<uint16_t*>(dst) + begin, end - begin, at_once);
    };
    return Kernel{map_blocks(count), [=](int block) { for_map_block(block, count, elements); },
                  [=](int64_t begin, int64_t end) { elements(begin * width, end * width); }};
  };
  p.step(std::move(step));
}

/// Calls f(first element, first channel, channels, elements per channel) for pieces of the elements
/// [begin, end) of a tensor within which channels are consecutive.
template <class F>
void for_channel_runs(const ChannelView& v, int64_t begin, int64_t end, const F& f) {
  const bool rows = v.inner == 1;
  const int64_t line = rows ? v.channels : v.inner;
  int64_t channel = rows ? begin % v.channels : begin / v.inner % v.channels;
  int64_t next = (begin / line + 1) * line;
  for (int64_t i = begin; i < end; i = next, next += line) {
    next = std::min(end, next);
    if (rows) {
      f(i, channel, next - i, 1);
      channel = 0;
    } else {
      f(i, channel, 1, next - i);
      channel = channel + 1 == v.channels ? 0 : channel + 1;
    }
  }
}

/// out = f(data values of the element, channel values of its channel), where the channel is axis 1.
/// `data` tensors have the shape of out, `channel` tensors one value per channel.
template <size_t D, size_t K, class F>
void map_channels(Program& p, std::string name, F f, TensorId out,
                  const std::array<TensorId, D>& data, const std::array<TensorId, K>& channel) {
  const Layout layout = p.layout(data[0]);
  const ChannelView view(p.shape(out), layout);
  Step step;
  step.name = std::move(name);
  step.kernel = std::string("channel map ") + layout_name(layout);
  step.space = p.space_of(step);
  const Format format = p.format(data[0]);
  const Version version(layout, format, step.space);
  for (TensorId id : data) step.reads.push_back(p.read(id, version));
  const Version row(Layout::kRowMajor, Format::kFloat32, step.space);
  for (TensorId id : channel) step.reads.push_back(p.read(id, row));
  step.writes = {p.write(out, version)};
  step.in_place = D;
  step.rows = element_rows(p.shape(out), layout, D);
  step.make = [=, reads = step.reads, write = step.writes[0],
               width = step.rows.width](const Binder& at) {
    std::array<const void*, D> src;
    std::array<const float*, K> per_channel;
    for (size_t i = 0; i < D; ++i) src[i] = at.as<void>(reads[i]);
    for (size_t i = 0; i < K; ++i) per_channel[i] = at(reads[D + i]);
    void* dst = at.as<void>(write);
    const auto piece = [=](const std::array<const float*, D>& src_at, float* dst_at, int64_t first,
                           int64_t some) {
      const F local = f;
      float* const out_at = dst_at;
      const auto in_at = src_at;
      const auto channel_at = per_channel;
      const auto element = [&](int64_t i, const std::array<float, K>& k) {
        std::array<float, D> d;
        for (size_t j = 0; j < D; ++j) d[j] = in_at[j][i];
        out_at[i] = local(d, k);
      };
      const auto values = [&](int64_t c) {
        std::array<float, K> k;
        for (size_t j = 0; j < K; ++j) k[j] = channel_at[j][c];
        return k;
      };
      const auto run = [&](int64_t i, int64_t channel, int64_t channels, int64_t inner) {
        i -= first;
        if (inner == 1) {
          CFT_INDEPENDENT
          for (int64_t c = 0; c < channels; ++c) element(i + c, values(channel + c));
        } else {
          const std::array<float, K> k = values(channel);
          CFT_INDEPENDENT
          for (int64_t j = i; j < i + inner; ++j) element(j, k);
        }
      };
      for_channel_runs(view, first, first + some, run);
    };
    const bool wide = format == Format::kBFloat16 && has_wide_map() && view.inner == 1;
    const auto wide_run = [=](int64_t i, int64_t channel, int64_t channels, int64_t) {
      const auto at_once = [=](const std::array<float, D>& values, int64_t c) {
        std::array<float, K> k;
        for (size_t j = 0; j < K; ++j) k[j] = per_channel[j][channel + c];
        return f(values, k);
      };
      wide_map(numbers(src, i), static_cast<uint16_t*>(dst) + i, channels, at_once);
    };
    const auto elements = [=](int64_t begin, int64_t end) {
      if (wide) return for_channel_runs(view, begin, end, wide_run);
      as_floats(format, src, dst, begin, end, piece);
    };
    const int64_t count = view.outer * view.channels * view.inner;
    return Kernel{map_blocks(count), [=](int block) { for_map_block(block, count, elements); },
                  [=](int64_t begin, int64_t end) { elements(begin * width, end * width); }};
  };
  p.step(std::move(step));
}

/// Channels [c0, c1) of a tensor as map_indexed() computes them.
struct IndexedBlock {
  static constexpr int64_t kRun = 64;

  Extents e;
  Strides stride;
  Format format;
  const void* src;
  void* dst;
  int64_t c0, c1;

  /// Whether channels are adjacent: a run of up to kRun is then computed at a time.
  static bool in_runs(const Extents& e, const Strides& stride) {
    return stride.c == 1 && stride.n >= e.c;
  }
  /// Channels per block.
  static int64_t chunk(const Extents& e, const Strides& stride) {
    return in_runs(e, stride) ? kRun : stride.c < stride.n ? 16 : 1;
  }

  /// Iterates images within channels or channels within images, whichever has the smaller stride.
  template <class F>
  void map(F& f) const {
    for (int64_t s = 0; s < e.s; ++s) {
      if (in_runs(e, stride)) {
        for (int64_t n = 0; n < e.n; ++n) run(f, n, s);
      } else if (stride.c < stride.n) {
        for (int64_t n = 0; n < e.n; ++n) {
          for (int64_t c = c0; c < c1; ++c) element(f, n, c, s);
        }
      } else {
        for (int64_t c = c0; c < c1; ++c) {
          for (int64_t n = 0; n < e.n; ++n) element(f, n, c, s);
        }
      }
    }
  }

 private:
  template <class F>
  void element(F& f, int64_t n, int64_t c, int64_t s) const {
    const int64_t i = n * stride.n + c * stride.c + s * stride.s;
    put_number(format, f(number(format, src, i), n, c * e.s + s), dst, i);
  }
  template <class F>
  void run(F& f, int64_t n, int64_t s) const {
    const int64_t first = n * stride.n + c0 + s * stride.s, count = c1 - c0;
    std::array<float, kRun> room, results;
    const float* const from = load_floats(format, src, first, count, room.data());
    for (int64_t c = 0; c < count; ++c) results[size_t(c)] = f(from[c], n, (c0 + c) * e.s + s);
    store_floats(format, results.data(), count, dst, first);
  }
};

/// out[i] = f(in[i], sample, element): `sample` is the row in the batch, `element` the row-major
/// index within it, the same in every layout. For functions of the position, such as dropout.
template <class F>
void map_indexed(Program& p, std::string name, F make_f, TensorId out, TensorId in) {
  const Layout layout = p.layout(in);
  const Extents e(p.shape(out));
  Step step;
  step.name = std::move(name);
  step.kernel = std::string("indexed map ") + layout_name(layout);
  step.space = p.space_of(step);
  const Format format = p.format(in);
  const Version version(layout, format, step.space);
  step.reads = {p.read(in, version)};
  step.writes = {p.write(out, version)};
  step.in_place = 1;
  step.make = [=, read = step.reads[0], write = step.writes[0]](const Binder& at) {
    const void* src = at.as<void>(read);
    void* dst = at.as<void>(write);
    const RunContext* run = at.run();
    const Strides stride(e, layout);
    const int64_t chunk = IndexedBlock::chunk(e, stride);
    return Kernel{int((e.c + chunk - 1) / chunk), [=](int block) {
                    auto f = make_f(*run);
                    const int64_t c0 = block * chunk, c1 = std::min(e.c, c0 + chunk);
                    IndexedBlock{e, stride, format, src, dst, c0, c1}.map(f);
                  }};
  };
  p.step(std::move(step));
}

struct Plus {
  static Rule rule() { return Rule::kSum; }
  float operator()(float x, float y) const { return x + y; }
};

/// Adds tensors of equal shape: out = a + b, in that order.
inline void add(Program& p, std::string name, TensorId out, TensorId a, TensorId b) {
  map(p, std::move(name), Plus(), out, a, b);
}

}  // namespace cafetiere
