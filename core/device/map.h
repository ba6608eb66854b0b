// Element-wise operations, written once as a functor and compiled for every layout.
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

/// out[i] = f(in[i]...). All tensors have the same element count; the first input's layout rules.
template <class F, class... In>
void map(Program& p, std::string name, F f, TensorId out, In... in) {
  const std::array<TensorId, sizeof...(In)> inputs{in...};
  const Layout layout = p.layout(inputs[0]);
  const int64_t count = p.shape(out).count();
  Step step;
  step.name = std::move(name);
  step.kernel = std::string("map ") + layout_name(layout);
  for (TensorId id : inputs) step.reads.push_back(p.read(id, layout));
  step.writes = {p.write(out, layout)};
  step.in_place = 0;
  step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
    std::array<const float*, sizeof...(In)> src;
    for (size_t i = 0; i < src.size(); ++i) src[i] = at(reads[i]);
    float* dst = at(write);
    return Kernel{map_blocks(count), [=](int block) {
                    const int64_t begin = block * kMapBlock;
                    const int64_t end = std::min(count, begin + kMapBlock);
                    // Locals: what is captured might be what dst points to, for all the compiler
                    // knows.
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
  for (TensorId id : data) step.reads.push_back(p.read(id, layout));
  for (TensorId id : channel) step.reads.push_back(p.read(id, Layout::kRowMajor));
  step.writes = {p.write(out, layout)};
  step.in_place = 0;
  step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
    std::array<const float*, D> src;
    std::array<const float*, K> per_channel;
    for (size_t i = 0; i < D; ++i) src[i] = at(reads[i]);
    for (size_t i = 0; i < K; ++i) per_channel[i] = at(reads[D + i]);
    float* dst = at(write);
    const bool split_outer = view.outer >= 8;
    return Kernel{int(split_outer ? view.outer : view.channels), [=](int block) {
                    const int64_t o0 = split_outer ? block : 0;
                    const int64_t o1 = split_outer ? block + 1 : view.outer;
                    const int64_t c0 = split_outer ? 0 : block;
                    const int64_t c1 = split_outer ? view.channels : block + 1;
                    const F local = f;
                    float* const out_at = dst;
                    const auto in_at = src;
                    for (int64_t o = o0; o < o1; ++o) {
                      for (int64_t c = c0; c < c1; ++c) {
                        std::array<float, K> k;
                        for (size_t i = 0; i < K; ++i) k[i] = per_channel[i][c];
                        const int64_t base = (o * view.channels + c) * view.inner;
                        CFT_INDEPENDENT
                        for (int64_t i = base; i < base + view.inner; ++i) {
                          std::array<float, D> d;
                          for (size_t j = 0; j < D; ++j) d[j] = in_at[j][i];
                          out_at[i] = local(d, k);
                        }
                      }
                    }
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
  step.reads = {p.read(in, layout)};
  step.writes = {p.write(out, layout)};
  step.in_place = 0;
  step.make = [=, read = step.reads[0], write = step.writes[0]](const Binder& at) {
    const float* src = at(read);
    float* dst = at(write);
    const RunContext* run = at.run();
    const int64_t stride_n = layout == Layout::kRowMajor ? e.c * e.s : 1;
    return Kernel{int(e.c), [=](int block) {
                    const auto f = make_f(*run);
                    const int64_t c = block;
                    for (int64_t s = 0; s < e.s; ++s) {
                      const int64_t element = c * e.s + s;
                      const int64_t row = layout == Layout::kPixels ? s * e.c + c : element;
                      const int64_t base = layout == Layout::kRowMajor ? element : row * e.n;
                      for (int64_t n = 0; n < e.n; ++n) {
                        const int64_t i = base + n * stride_n;
                        dst[i] = f(src[i], n, element);
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
