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
  step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
    std::array<const float*, sizeof...(In)> src;
    for (size_t i = 0; i < src.size(); ++i) src[i] = at(reads[i]);
    float* dst = at(write);
    return Kernel{map_blocks(count), [=](int block) {
                    const int64_t begin = block * kMapBlock;
                    const int64_t end = std::min(count, begin + kMapBlock);
                    // Locals: as far as the compiler knows, dst may alias what is captured.
                    const F local = f;
                    float* const out_at = dst;
                    const auto in_at = src;
                    [&]<size_t... I>(std::index_sequence<I...>) {
                      CFT_INDEPENDENT
                      for (int64_t i = begin; i < end; ++i) out_at[i] = local(in_at[I][i]...);
                    }
                    (std::index_sequence_for<In...>{});
                  }};
  };
  p.step(std::move(step));
}

/// The blocks of an operation that knows the channel of each element: ranges of the outer dimension
/// where there are some, single channels otherwise.
struct ChannelBlocks {
  ChannelView view;
  bool split_outer;
  int64_t outers;  ///< a block
  int count;

  explicit ChannelBlocks(const ChannelView& v)
      : view(v),
        split_outer(v.outer >= 8 || v.inner == 1),
        outers(std::max<int64_t>(1, kMapBlock / std::max<int64_t>(1, v.channels * v.inner))),
        count(int(split_outer ? (v.outer + outers - 1) / outers : v.channels)) {}

  /// Calls f(offset of channel 0, first channel, end of channels) for each outer index of a block.
  template <class F>
  void for_each_row(int block, const F& f) const {
    const int64_t begin = split_outer ? block * outers : 0;
    const int64_t end = split_outer ? std::min(view.outer, begin + outers) : view.outer;
    for (int64_t o = begin; o < end; ++o) {
      f(o * view.channels * view.inner, split_outer ? 0 : int64_t(block),
        split_outer ? view.channels : int64_t(block) + 1);
    }
  }
};

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
  step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
    std::array<const float*, D> src;
    std::array<const float*, K> per_channel;
    for (size_t i = 0; i < D; ++i) src[i] = at(reads[i]);
    for (size_t i = 0; i < K; ++i) per_channel[i] = at(reads[D + i]);
    float* dst = at(write);
    const ChannelBlocks blocks(view);
    return Kernel{blocks.count, [=](int block) {
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
                    blocks.for_each_row(block, [&](int64_t base, int64_t c0, int64_t c1) {
                      if (view.inner == 1) {
                        CFT_INDEPENDENT
                        for (int64_t c = c0; c < c1; ++c) element(base + c, values(c));
                        return;
                      }
                      for (int64_t c = c0; c < c1; ++c) {
                        const std::array<float, K> k = values(c);
                        const int64_t begin = base + c * view.inner;
                        CFT_INDEPENDENT
                        for (int64_t i = begin; i < begin + view.inner; ++i) element(i, k);
                      }
                    });
                  }};
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
