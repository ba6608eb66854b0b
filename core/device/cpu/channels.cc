// Reductions to one value a channel in any layout, eight partial sums in flight.
#include <array>

#include "core/device/cpu/cpu_device.h"
#include "core/device/map.h"

namespace cafetiere {
namespace {

/// Sum of f(i) over [begin, end): eight running sums, then those in order, so that the result is
/// that of a fixed tree whatever the vector width.
template <class F>
double sum_of(int64_t begin, int64_t end, const F& f) {
  std::array<double, 8> lanes{};
  int64_t i = begin;
  for (; i + 8 <= end; i += 8) {
    for (int64_t l = 0; l < 8; ++l) lanes[size_t(l)] += f(i + l);
  }
  for (int64_t l = 0; i < end; ++i, ++l) lanes[size_t(l)] += f(i);
  double sum = 0;
  for (double lane : lanes) sum += lane;
  return sum;
}

/// The same over all elements of a channel.
template <class F>
double channel_sum(const ChannelView& v, int64_t c, const F& f) {
  double sum = 0;
  for (int64_t o = 0; o < v.outer; ++o) {
    const int64_t base = (o * v.channels + c) * v.inner;
    sum += sum_of(base, base + v.inner, f);
  }
  return sum;
}

}  // namespace

void CpuDevice::channel_moments(Program& p, const std::string& name, TensorId src, TensorId mean,
                                TensorId variance) {
  const Layout layout = p.layout(src);
  const ChannelView v(p.shape(src), layout);
  Step step;
  step.name = name;
  step.kernel = std::string("vector ") + layout_name(layout);
  step.reads = {p.read(src, layout)};
  step.writes = {p.write(mean, Layout::kRowMajor), p.write(variance, Layout::kRowMajor)};
  step.make = [=, read = step.reads[0], writes = step.writes](const Binder& at) {
    const float* x = at(read);
    float *m = at(writes[0]), *var = at(writes[1]);
    return Kernel{int(v.channels), [=](int c) {
                    const double count = double(v.outer * v.inner);
                    const double centre =
                        channel_sum(v, c, [=](int64_t i) { return double(x[i]); }) / count;
                    const double squares = channel_sum(v, c, [=](int64_t i) {
                      const double d = x[i] - centre;
                      return d * d;
                    });
                    m[c] = float(centre);
                    var[c] = float(squares / count);
                  }};
  };
  p.step(std::move(step));
}

void CpuDevice::channel_sums(Program& p, const std::string& name, TensorId a, TensorId b,
                             Gradient sum_a, Gradient sum_ab) {
  // Without pixels the row-major form has its channels scattered; the other one exists or will.
  const Layout layout = Extents(p.shape(a)).s == 1 ? Layout::kFeatures : p.layout(a);
  const ChannelView v(p.shape(a), layout);
  const bool dot = b != kNoTensor, plain = sum_a.tensor != kNoTensor;
  Step step;
  step.name = name;
  step.kernel = std::string("vector ") + layout_name(layout);
  step.reads = {p.read(a, layout)};
  if (dot) step.reads.push_back(p.read(b, layout));
  if (plain) step.writes.push_back(p.write(sum_a.tensor, Layout::kRowMajor));
  if (dot) step.writes.push_back(p.write(sum_ab.tensor, Layout::kRowMajor));
  step.make = [=, reads = step.reads, writes = step.writes](const Binder& at) {
    const float* x = at(reads[0]);
    const float* y = dot ? at(reads[1]) : nullptr;
    float* to_a = plain ? at(writes[0]) : nullptr;
    float* to_ab = dot ? at(writes.back()) : nullptr;
    const RunContext* run = at.run();
    return Kernel{
        int(v.channels), [=](int c) {
          if (to_a) {
            put(to_a + c, float(channel_sum(v, c, [=](int64_t i) { return double(x[i]); })),
                sum_a.adds(*run));
          }
          if (to_ab) {
            put(to_ab + c, float(channel_sum(v, c, [=](int64_t i) { return double(x[i]) * y[i]; })),
                sum_ab.adds(*run));
          }
        }};
  };
  p.step(std::move(step));
}

}  // namespace cafetiere
