// SPDX-License-Identifier: Apache-2.0
// Reductions to one value a channel in any layout. Where channels are not innermost, each is a
// block with eight partial sums in flight; where they are, ranges of rows are blocks that sum all
// channels, and their sums are added in order.
#include <algorithm>
#include <array>

#include "core/device/cpu/cpu_device.h"
#include "core/device/cpu/lane_chunks.h"
#include "core/device/map.h"

namespace cafetiere {
namespace {

/// Sum of f(i) over [begin, end): eight running sums, then those in order: a fixed tree at any
/// vector width.
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

/// Rows of innermost channels, cut into parts.
struct RowParts {
  int64_t rows, channels, part_rows, parts;

  explicit RowParts(const ChannelView& v)
      : rows(v.outer),
        channels(v.channels),
        part_rows(std::max<int64_t>(16, kMapBlock / std::max<int64_t>(1, v.channels))),
        parts((rows + part_rows - 1) / part_rows) {}
  int64_t begin(int part) const { return part * part_rows; }
  int64_t end(int part) const { return std::min(rows, begin(part) + part_rows); }

  /// sums[c] = sum of f(i, c) over a part's elements i of channel c.
  template <class F>
  void sum(int part, float* sums, const F& f) const {
    for_each_chunk(channels,
                   [&](int64_t first, auto count) { chunk(part, first, count, sums, f); });
  }
  /// The parts' sums of one channel, added in order.
  double merged(const float* sums, int64_t c) const {
    double sum = 0;
    for (int64_t part = 0; part < parts; ++part) sum += sums[part * channels + c];
    return sum;
  }

 private:
  template <class Count, class F>
  void chunk(int part, int64_t first, Count count, float* sums, const F& f) const {
    std::array<double, kLaneChunk> sum{};
    for (int64_t row = begin(part); row < end(part); ++row) {
      const int64_t base = row * channels;
      for (int64_t c = first; c < first + count; ++c) sum[size_t(c - first)] += f(base + c, c);
    }
    for (int64_t c = 0; c < count; ++c) sums[first + c] = float(sum[size_t(c)]);
  }
};

/// The parts' moments of one channel, merged by the rule of Chan et al. (1979).
void merge_moments(const RowParts& r, const float* means, const float* squares, int64_t c,
                   float* mean, float* variance) {
  double centre = 0, sum = 0, seen = 0;
  for (int64_t part = 0; part < r.parts; ++part) {
    const double more = double(r.end(int(part)) - r.begin(int(part)));
    const double gap = double(means[part * r.channels + c]) - centre;
    sum += squares[part * r.channels + c] + gap * gap * seen * more / (seen + more);
    centre += gap * more / (seen + more);
    seen += more;
  }
  mean[c] = float(centre);
  variance[c] = float(sum / seen);
}

/// channel_moments() where channels are innermost: one pass over memory, as a part is still in the
/// cache when its mean is known.
void row_moments(Program& p, const std::string& name, Layout layout, TensorId src, TensorId mean,
                 TensorId variance) {
  const RowParts r(ChannelView(p.shape(src), layout));
  const BufferId means = p.scratch(r.parts * r.channels), squares = p.scratch(r.parts * r.channels);
  Step step;
  step.name = name;
  step.kernel = std::string("vector ") + layout_name(layout) + ", lanes are channels";
  step.reads = {p.read(src, layout)};
  step.writes = {means, squares};
  step.make = [=, read = step.reads[0]](const Binder& at) {
    const float* x = at(read);
    float *m = at(means), *s = at(squares);
    return Kernel{int(r.parts), [=](int part) {
                    float* centre = m + part * r.channels;
                    r.sum(part, centre, [=](int64_t i, int64_t) { return double(x[i]); });
                    const float count = float(r.end(part) - r.begin(part));
                    for (int64_t c = 0; c < r.channels; ++c) centre[c] /= count;
                    r.sum(part, s + part * r.channels, [=](int64_t i, int64_t c) {
                      const double d = double(x[i]) - double(centre[c]);
                      return d * d;
                    });
                  }};
  };
  p.step(std::move(step));

  Step merge;
  merge.name = name + " merge";
  merge.kernel = std::to_string(r.parts) + " parts";
  merge.reads = {means, squares};
  merge.writes = {p.write(mean, Layout::kRowMajor), p.write(variance, Layout::kRowMajor)};
  merge.make = [=, writes = merge.writes](const Binder& at) {
    const float *m = at(means), *s = at(squares);
    float *to_mean = at(writes[0]), *to_variance = at(writes[1]);
    return Kernel{int(r.channels), [=](int c) { merge_moments(r, m, s, c, to_mean, to_variance); }};
  };
  p.step(std::move(merge));
}

/// channel_sums() where channels are innermost: one pass over memory for both sums.
void row_sums(Program& p, const std::string& name, Layout layout, TensorId a, TensorId b,
              Gradient sum_a, Gradient sum_ab) {
  const RowParts r(ChannelView(p.shape(a), layout));
  const bool plain = sum_a.tensor != kNoTensor, dot = b != kNoTensor;
  const int64_t sums = r.parts * r.channels;
  const BufferId partial = p.scratch(2 * sums);  // of a, then of a * b
  Step step;
  step.name = name;
  step.kernel = std::string("vector ") + layout_name(layout) + ", lanes are channels";
  step.reads = {p.read(a, layout)};
  if (dot) step.reads.push_back(p.read(b, layout));
  step.writes = {partial};
  step.make = [=, reads = step.reads](const Binder& at) {
    const float* x = at(reads[0]);
    const float* y = dot ? at(reads[1]) : nullptr;
    float* to = at(partial);
    return Kernel{int(r.parts), [=](int part) {
                    float* const own = to + part * r.channels;
                    if (plain) r.sum(part, own, [=](int64_t i, int64_t) { return double(x[i]); });
                    if (!dot) return;
                    r.sum(part, own + sums,
                          [=](int64_t i, int64_t) { return double(x[i]) * y[i]; });
                  }};
  };
  p.step(std::move(step));

  Step merge;
  merge.name = name + " merge";
  merge.kernel = std::to_string(r.parts) + " parts";
  merge.reads = {partial};
  if (plain) merge.writes.push_back(p.write(sum_a.tensor, Layout::kRowMajor));
  if (dot) merge.writes.push_back(p.write(sum_ab.tensor, Layout::kRowMajor));
  merge.make = [=, writes = merge.writes](const Binder& at) {
    const float* from = at(partial);
    float* to_a = plain ? at(writes[0]) : nullptr;
    float* to_ab = dot ? at(writes.back()) : nullptr;
    const RunContext* run = at.run();
    return Kernel{int(r.channels), [=](int c) {
                    if (to_a) put(to_a + c, float(r.merged(from, c)), sum_a.adds(*run));
                    if (to_ab) put(to_ab + c, float(r.merged(from + sums, c)), sum_ab.adds(*run));
                  }};
  };
  p.step(std::move(merge));
}

}  // namespace

void CpuDevice::channel_moments(Program& p, const std::string& name, TensorId src, TensorId mean,
                                TensorId variance) {
  const Layout layout = p.layout(src);
  const ChannelView v(p.shape(src), layout);
  if (v.inner == 1) return row_moments(p, name, layout, src, mean, variance);
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
  const bool dot = b != kNoTensor, plain = sum_a.tensor != kNoTensor;
  // An inner product's gradient is, or will be, stored with the batch innermost.
  const bool features = Extents(p.shape(a)).s == 1 && !dot;
  const Layout layout = features ? Layout::kFeatures : p.layout(a);
  const ChannelView v(p.shape(a), layout);
  if (v.inner == 1) return row_sums(p, name, layout, a, b, sum_a, sum_ab);
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
