// SPDX-License-Identifier: Apache-2.0
// Element-wise operations, written once as a functor and compiled for every layout. The device of the
// program says whose memory they work in.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/device/device.h"

/// Says of the next loop that its iterations do not depend on each other: input and output may be
/// the same memory, but only at the same index.
#define CFT_INDEPENDENT _Pragma("GCC ivdep")

namespace cafetiere {

inline constexpr int64_t kMapBlock = 1 << 14;  ///< floats a block; fixed, so blocks follow shape

inline int map_blocks(int64_t count) { return int((count + kMapBlock - 1) / kMapBlock); }

/// Calls f(begin, end) for a block of kMapBlock elements.
template <class F>
void for_map_block(int block, int64_t count, const F& f) {
  f(block * kMapBlock, std::min(count, (block + 1) * kMapBlock));
}

/// The rows of a step that works element by element on tensors of this shape and layout.
inline Rows element_rows(const Shape& shape, Layout layout, size_t reads) {
  const ChannelView view(shape, layout);
  if (view.inner == 1) return {.count = view.outer, .width = view.channels, .reads = reads};
  return {.count = shape.count(), .reads = reads};
}

/// Writes a gradient value under Caffe's accumulation rule.
inline void put(float* gradient, float value, bool add) {
  *gradient = add ? *gradient + value : value;
}

/// out[i] = f(in[i]...). All tensors have the same element count; the first input's layout is used.
template <class F, class... In>
void map(Program& p, std::string name, F f, TensorId out, In... in) {
  const std::array<TensorId, sizeof...(In)> inputs{in...};
  const Layout layout = p.layout(inputs[0]);
  const int64_t count = p.shape(out).count();
  Step step;
  step.name = std::move(name);
  step.kernel = std::string("map ") + layout_name(layout);
  step.space = p.space_of(step);
  const Version version(layout, Format::kFloat32, step.space);
  for (TensorId id : inputs) step.reads.push_back(p.read(id, version));
  step.writes = {p.write(out, version)};
  step.in_place = 0;
  step.rows = element_rows(p.shape(out), layout, sizeof...(In));
  step.make = [=, reads = step.reads, write = step.writes[0],
               width = step.rows.width](const Binder& at) {
    std::array<const float*, sizeof...(In)> src;
    for (size_t i = 0; i < src.size(); ++i) src[i] = at(reads[i]);
    float* dst = at(write);
    const auto elements = [=](int64_t begin, int64_t end) {
      // Locals: as far as the compiler knows, dst may alias what is captured.
      const F local = f;
      float* const out_at = dst;
      const auto in_at = src;
      [&]<size_t... I>(std::index_sequence<I...>) {
        CFT_INDEPENDENT
        for (int64_t i = begin; i < end; ++i) out_at[i] = local(in_at[I][i]...);
      }
      (std::index_sequence_for<In...>{});
    };
    return Kernel{map_blocks(count), [=](int block) { for_map_block(block, count, elements); },
                  [=](int64_t begin, int64_t end) { elements(begin * width, end * width); }};
  };
  p.step(std::move(step));
}

/// Calls f(first element, first channel, channels, elements a channel) for pieces of the elements
/// [begin, end) of a tensor, within which channels follow each other.
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

/// out = f(data values of the element, channel values of its channel), the channel being axis 1.
/// `data` tensors have out's shape, `channel` tensors hold one value a channel.
template <size_t D, size_t K, class F>
void map_channels(Program& p, std::string name, F f, TensorId out,
                  const std::array<TensorId, D>& data, const std::array<TensorId, K>& channel) {
  const Layout layout = p.layout(data[0]);
  const ChannelView view(p.shape(out), layout);
  Step step;
  step.name = std::move(name);
  step.kernel = std::string("channel map ") + layout_name(layout);
  step.space = p.space_of(step);
  const Version version(layout, Format::kFloat32, step.space);
  for (TensorId id : data) step.reads.push_back(p.read(id, version));
  const Version row(Layout::kRowMajor, Format::kFloat32, step.space);
  for (TensorId id : channel) step.reads.push_back(p.read(id, row));
  step.writes = {p.write(out, version)};
  step.in_place = 0;
  step.rows = element_rows(p.shape(out), layout, D);
  step.make = [=, reads = step.reads, write = step.writes[0],
               width = step.rows.width](const Binder& at) {
    std::array<const float*, D> src;
    std::array<const float*, K> per_channel;
    for (size_t i = 0; i < D; ++i) src[i] = at(reads[i]);
    for (size_t i = 0; i < K; ++i) per_channel[i] = at(reads[D + i]);
    float* dst = at(write);
    const auto elements = [=](int64_t begin, int64_t end) {
      const F local = f;
      float* const out_at = dst;
      const auto in_at = src;
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
        if (inner == 1) {
          CFT_INDEPENDENT
          for (int64_t c = 0; c < channels; ++c) element(i + c, values(channel + c));
        } else {
          const std::array<float, K> k = values(channel);
          CFT_INDEPENDENT
          for (int64_t j = i; j < i + inner; ++j) element(j, k);
        }
      };
      for_channel_runs(view, begin, end, run);
    };
    const int64_t count = view.outer * view.channels * view.inner;
    return Kernel{map_blocks(count), [=](int block) { for_map_block(block, count, elements); },
                  [=](int64_t begin, int64_t end) { elements(begin * width, end * width); }};
  };
  p.step(std::move(step));
}

/// out[i] = f(in[i], sample, element): `sample` is the row in the batch, `element` the row-major
/// index within it, the same in every layout. For what depends on position, such as dropout.
template <class F>
void map_indexed(Program& p, std::string name, F make_f, TensorId out, TensorId in) {
  const Layout layout = p.layout(in);
  const Extents e(p.shape(out));
  Step step;
  step.name = std::move(name);
  step.kernel = std::string("indexed map ") + layout_name(layout);
  step.space = p.space_of(step);
  const Version version(layout, Format::kFloat32, step.space);
  step.reads = {p.read(in, version)};
  step.writes = {p.write(out, version)};
  step.in_place = 0;
  step.make = [=, read = step.reads[0], write = step.writes[0]](const Binder& at) {
    const float* src = at(read);
    float* dst = at(write);
    const RunContext* run = at.run();
    const Strides stride(e, layout);
    // Images inside channels or channels inside images, whichever has the smaller stride.
    const bool channels_inside = stride.c < stride.n;
    const int64_t chunk = channels_inside ? 16 : 1;  // channels a block: a cache line
    return Kernel{int((e.c + chunk - 1) / chunk), [=](int block) {
                    const auto f = make_f(*run);
                    const int64_t c0 = block * chunk, c1 = std::min(e.c, c0 + chunk);
                    const auto element = [&](int64_t n, int64_t c, int64_t s) {
                      const int64_t i = n * stride.n + c * stride.c + s * stride.s;
                      dst[i] = f(src[i], n, c * e.s + s);
                    };
                    for (int64_t s = 0; s < e.s; ++s) {
                      if (channels_inside) {
                        for (int64_t n = 0; n < e.n; ++n) {
                          for (int64_t c = c0; c < c1; ++c) element(n, c, s);
                        }
                      } else {
                        for (int64_t c = c0; c < c1; ++c) {
                          for (int64_t n = 0; n < e.n; ++n) element(n, c, s);
                        }
                      }
                    }
                  }};
  };
  p.step(std::move(step));
}

/// Adds tensors of one shape: out = a + b, in that order.
inline void add(Program& p, std::string name, TensorId out, TensorId a, TensorId b) {
  map(
      p, std::move(name), [](float x, float y) { return x + y; }, out, a, b);
}

}  // namespace cafetiere
