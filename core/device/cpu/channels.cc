// SPDX-License-Identifier: Apache-2.0
// Reductions to one value per channel, in any layout. Blocks are ranges of rows that sum all
// channels, and their sums are added in order. For few rows of long channels, and for moments unless
// channels are innermost, each channel is a block.
#include <algorithm>
#include <array>

#include "core/device/cpu/bf16_channel_sums.h"
#include "core/device/cpu/cpu_device.h"
#include "core/device/cpu/lane_chunks.h"
#include "core/device/map.h"

namespace cafetiere {
namespace {

/// The sum of f(i) over [begin, end): eight running sums, then those in order: the same order for
/// any vector width.
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

/// The same for all elements of a channel, f(i) of x[i]. Its runs are too far apart for the hardware
/// to prefetch them.
template <class F>
double channel_sum(const ChannelView& v, int64_t c, const float* x, const F& f) {
  constexpr int64_t kAhead = 4, kMostLines = 8;
  const int64_t next = v.channels * v.inner, lines = std::min(v.inner, kMostLines * kCacheLine);
  double sum = 0;
  for (int64_t o = 0; o < v.outer; ++o) {
    const int64_t base = (o * v.channels + c) * v.inner;
    for (int64_t l = 0; l < lines; l += kCacheLine) {
      __builtin_prefetch(x + base + kAhead * next + l);
    }
    sum += sum_of(base, base + v.inner, f);
  }
  return sum;
}

/// Rows of all channels, divided into parts.
struct RowParts {
  static constexpr int64_t kRun = 16;  ///< rows added in float32 if channels are innermost
  int64_t rows, channels, inner, part_rows, parts;

  explicit RowParts(const ChannelView& v)
      : rows(v.outer),
        channels(v.channels),
        inner(v.inner),
        part_rows(std::max<int64_t>(inner == 1 ? kRun : 1,
                                    kMapBlock / std::max<int64_t>(1, v.channels * v.inner))),
        parts((rows + part_rows - 1) / part_rows) {}
  int64_t begin(int64_t part) const { return part * part_rows; }
  int64_t end(int64_t part) const { return std::min(rows, begin(part) + part_rows); }

  /// The Rows of a step that sums parts of all its inputs.
  Rows step_rows(const Step& step) const {
    return {.count = rows,
            .width = channels,
            .block = part_rows,
            .reads = step.reads.size(),
            .writes = false};
  }
  /// The kernel of such a step: f(part) for all parts.
  template <class F>
  Kernel kernel(const F& f) const {
    return {int(parts), [=](int part) { f(part); },
            [f, size = part_rows](int64_t begin, int64_t end) {
              for (int64_t row = begin; row < end; row += size) f(row / size);
            }};
  }

  /// sums[c] = the sum over a part of the terms f(v, c, count) of channel c, where v holds the
  /// values of `from` for `count` <= 8 channels starting at c. K sums in one pass over memory, the
  /// k-th stored at sums[k] + c. Runs of rows are added in float32, and their sums in double.
  template <size_t K, size_t S, class F>
  void sum(int64_t part, const std::array<const float*, S>& from, const std::array<float*, K>& sums,
           const F& f) const {
    for_each_chunk<kMostTotals>(channels, [&](int64_t first, int64_t count) {
      std::array<std::array<float, kMostTotals>, K> run;
      std::array<std::array<double, kMostTotals>, K> total;
      for (auto& of : total) std::fill_n(of.data(), count, 0.0);
      for (int64_t row = begin(part); row < end(part); row += kRun) {
        for (auto& of : run) std::fill_n(of.data(), count, 0.F);
        for (int64_t r = row; r < std::min(end(part), row + kRun); ++r) {
          add_row(r * channels + first, first, count, from, &run, f);
        }
        for (size_t k = 0; k < K; ++k) {
          for (int64_t c = 0; c < count; ++c) total[k][size_t(c)] += double(run[k][size_t(c)]);
        }
      }
      for (size_t k = 0; k < K; ++k) {
        for (int64_t c = 0; c < count; ++c) sums[k][first + c] = float(total[k][size_t(c)]);
      }
    });
  }
  /// The same for channels with `inner` > 1 elements in each row: the terms are f(i, c, count) of
  /// the elements [i, i + count), count <= 8. Runs of elements are added in float32.
  template <class F>
  void sum_runs(int64_t part, float* sums, const F& f) const {
    constexpr int64_t kAtOnce = 128;  // channels whose sums fit into the L1 cache
    for_each_chunk<kAtOnce>(channels, [&](int64_t first, int64_t count) {
      std::array<std::array<double, kOctet>, kAtOnce> total{};
      for (int64_t row = begin(part); row < end(part); ++row) {
        for (int64_t c = 0; c < count; ++c) {
          const int64_t base = (row * channels + first + c) * inner;
          for_each_chunk<kRun * kOctet>(inner, [&](int64_t i, int64_t elements) {
            Simd8 run{};
            for_each_chunk<kOctet>(
                elements, [&](int64_t o, auto lanes) { run += f(base + i + o, first + c, lanes); });
            for (int64_t l = 0; l < kOctet; ++l) total[size_t(c)][size_t(l)] += double(run[l]);
          });
        }
      }
      for (int64_t c = 0; c < count; ++c) {
        double sum = 0;
        for (double lane : total[size_t(c)]) sum += lane;
        sums[first + c] = float(sum);
      }
    });
  }
  /// The same for innermost channels in bfloat16.
  bf16::ChannelSums sums_of(int64_t part, const uint16_t* x, float* sums) const {
    return {.x = x + begin(part) * channels,
            .rows = end(part) - begin(part),
            .channels = channels,
            .sums = sums};
  }
  /// Number of channels merged per block: one cache line of each part.
  static constexpr int64_t kMerged = 16;
  int merge_blocks() const { return int((channels + kMerged - 1) / kMerged); }
  int64_t merge_begin(int block) const { return block * kMerged; }
  int64_t merge_count(int block) const { return std::min(kMerged, channels - merge_begin(block)); }
  /// The parts' sums for a block of channels, added in order.
  std::array<double, kMerged> merged(const float* sums, int block) const {
    std::array<double, kMerged> sum{};
    for (int64_t part = 0; part < parts; ++part) {
      const float* from = sums + part * channels + merge_begin(block);
      for (int64_t c = 0; c < merge_count(block); ++c) sum[size_t(c)] += double(from[c]);
    }
    return sum;
  }

 private:
  static constexpr int64_t kMostTotals = 1024;  ///< channels whose sums fit into the L1 cache
  /// Prefetch distance in floats: without it, a core waits for memory half of the time.
  static constexpr int64_t kAhead = 512;

  /// Adds the terms of the row that starts at element i to the running sums of its channels.
  template <size_t S, size_t K, class F>
  static void add_row(int64_t i, int64_t first, int64_t count,
                      const std::array<const float*, S>& from,
                      std::array<std::array<float, kMostTotals>, K>* run, const F& f) {
    const auto add = [&](int64_t c, auto lanes) {
      std::array<Simd8, S> v;
      for (size_t s = 0; s < S; ++s) v[s] = load_octet(from[s] + i + c, lanes);
      const auto terms = f(v, first + c, lanes);
      for (size_t k = 0; k < K; ++k) {
        float* const to = (*run)[k].data() + c;
        store_octet(to, load_octet(to, lanes) + terms[k], lanes);
      }
    };
    for_each_chunk<2 * kOctet>(count, [&](int64_t c, int64_t lanes) {
      for (const float* x : from) __builtin_prefetch(x + i + c + kAhead);
      for_each_chunk<kOctet>(lanes, [&](int64_t o, auto n) { add(c + o, n); });
    });
  }
};

/// Merges the parts' moments for a block of channels (Chan et al. 1979).
void merge_moments(const RowParts& r, const float* means, const float* squares, int block,
                   float* mean, float* variance) {
  const int64_t first = r.merge_begin(block), count = r.merge_count(block);
  std::array<double, RowParts::kMerged> centre{}, sum{};
  double seen = 0;
  for (int64_t part = 0; part < r.parts; ++part) {
    const double more = double(r.end(part) - r.begin(part));
    const double share = more / (seen + more), weight = seen * share;
    for (int64_t c = 0; c < count; ++c) {
      const int64_t at = part * r.channels + first + c;
      const double gap = double(means[at]) - centre[size_t(c)];
      sum[size_t(c)] += double(squares[at]) + gap * gap * weight;
      centre[size_t(c)] += gap * share;
    }
    seen += more;
  }
  for (int64_t c = 0; c < count; ++c) {
    mean[first + c] = float(centre[size_t(c)]);
    variance[first + c] = float(sum[size_t(c)] / seen);
  }
}

/// channel_moments() with channels innermost: one pass over memory, since a part is still in the
/// cache when its mean is known.
void row_moments(Program& p, const std::string& name, Version version, TensorId src, TensorId mean,
                 TensorId variance) {
  const RowParts r(ChannelView(p.shape(src), version.layout));
  const BufferId means = p.scratch(r.parts * r.channels), squares = p.scratch(r.parts * r.channels);
  Step step;
  step.name = name;
  step.kernel = std::string("vector ") + layout_name(version.layout) + ", lanes are channels";
  step.reads = {p.read(src, version)};
  step.writes = {means, squares};
  step.rows = r.step_rows(step);
  step.make = [=, read = step.reads[0]](const Binder& at) {
    float *m = at(means), *s = at(squares);
    const auto divide = [=](float* centre, int64_t part) {
      const float count = float(r.end(part) - r.begin(part));
      for (int64_t c = 0; c < r.channels; ++c) centre[c] /= count;
    };
    if (version.format == Format::kBFloat16) {
      return r.kernel([=, sum = bf16::sum_channels(), x = at.as<uint16_t>(read)](int64_t part) {
        float* const centre = m + part * r.channels;
        bf16::ChannelSums of = r.sums_of(part, x, centre);
        sum(of);
        divide(centre, part);
        of.sums = s + part * r.channels, of.centre = centre;
        sum(of);
      });
    }
    return r.kernel([=, x = std::array<const float*, 1>{at(read)}](int64_t part) {
      using One = std::array<Simd8, 1>;
      float* const centre = m + part * r.channels;
      r.sum<1>(part, x, {centre}, [](const One& v, int64_t, int64_t) { return v; });
      divide(centre, part);
      r.sum<1>(part, x, {s + part * r.channels}, [=](const One& v, int64_t c, int64_t n) {
        const Simd8 d = v[0] - load_octet(centre + c, n);
        return One{d * d};
      });
    });
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
    return Kernel{r.merge_blocks(),
                  [=](int block) { merge_moments(r, m, s, block, to_mean, to_variance); }};
  };
  p.step(std::move(merge));
}

/// Rows enough for parts even if each is long: a core then sums what it has just written.
constexpr int64_t kManyRows = 16;

/// The buffers of the terms; -1: not used.
struct TermReads {
  BufferId a, b = -1, centre = -1;

  /// Adds them to the reads of the step.
  static TermReads of(Program& p, Version version, const ChannelTerms& terms, Step* step) {
    TermReads reads{.a = p.read(terms.a, version)};
    step->reads = {reads.a};
    if (terms.b == kNoTensor) return reads;
    step->reads.push_back(reads.b = p.read(terms.b, version));
    if (terms.centre == kNoTensor) return reads;
    step->reads.push_back(reads.centre = p.read(terms.centre, Layout::kRowMajor));
    return reads;
  }
  template <class T>
  static const T* address(const Binder& at, BufferId id) {
    return id < 0 ? nullptr : at.as<T>(id);
  }
};

/// channel_sums() by parts of the rows: one pass over memory for both sums.
void row_sums(Program& p, const std::string& name, Version version, const ChannelTerms& terms,
              Gradient sum_a, Gradient sum_ab) {
  const RowParts r(ChannelView(p.shape(terms.a), version.layout));
  const bool plain = sum_a.tensor != kNoTensor, dot = terms.b != kNoTensor;
  const int64_t sums = r.parts * r.channels;
  const BufferId partial = p.scratch(2 * sums);  // of a, then of the products
  Step step;
  step.name = name;
  step.kernel = std::string("vector ") + layout_name(version.layout) +
                (r.inner == 1 ? ", lanes are channels" : "");
  const TermReads reads = TermReads::of(p, version, terms, &step);
  step.writes = {partial};
  if (r.inner == 1) {
    step.rows = r.step_rows(step);
    if (reads.centre >= 0) --step.rows.reads;
  }
  step.make = [=](const Binder& at) {
    float* to = at(partial);
    const float* const centre = TermReads::address<float>(at, reads.centre);
    if (version.format == Format::kBFloat16) {
      const auto* const x = TermReads::address<uint16_t>(at, reads.a);
      const auto* const y = TermReads::address<uint16_t>(at, reads.b);
      return r.kernel([=, sum = bf16::sum_channels()](int64_t part) {
        float* const own = to + part * r.channels;
        bf16::ChannelSums of = r.sums_of(part, x, own);
        if (y) of.y = y + r.begin(part) * r.channels, of.products = own + sums;
        of.centre = centre;
        sum(of);
      });
    }
    const auto* const x = TermReads::address<float>(at, reads.a);
    const auto* const y = TermReads::address<float>(at, reads.b);
    if (r.inner > 1) {
      return r.kernel([=](int64_t part) {
        float* const own = to + part * r.channels;
        if (plain) {
          r.sum_runs(part, own,
                     [=](int64_t i, int64_t, auto lanes) { return load_octet(x + i, lanes); });
        }
        if (!dot) return;
        r.sum_runs(part, own + sums, [=](int64_t i, int64_t c, auto lanes) {
          const Simd8 v = load_octet(y + i, lanes);
          return load_octet(x + i, lanes) * (centre ? v - centre[c] : v);
        });
      });
    }
    return r.kernel([=](int64_t part) {
      using One = std::array<Simd8, 1>;
      using Two = std::array<Simd8, 2>;
      float* const own = to + part * r.channels;
      if (!dot) {
        return r.sum<1>(part, std::array{x}, {own},
                        [](const One& v, int64_t, int64_t) { return v; });
      }
      r.sum<2>(part, std::array{x, y}, {own, own + sums}, [=](const Two& v, int64_t c, auto n) {
        return Two{v[0], v[0] * (centre ? v[1] - load_octet(centre + c, n) : v[1])};
      });
    });
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
    const auto merge_into = [=](float* gradient, const float* parts, int block, bool add) {
      const auto sum = r.merged(parts, block);
      for (int64_t c = 0; c < r.merge_count(block); ++c) {
        put(gradient + r.merge_begin(block) + c, float(sum[size_t(c)]), add);
      }
    };
    return Kernel{r.merge_blocks(), [=](int block) {
                    if (to_a) merge_into(to_a, from, block, sum_a.adds(*run));
                    if (to_ab) merge_into(to_ab, from + sums, block, sum_ab.adds(*run));
                  }};
  };
  p.step(std::move(merge));
}

}  // namespace

void CpuDevice::channel_moments(Program& p, const std::string& name, TensorId src, TensorId mean,
                                TensorId variance) {
  const Layout layout = p.layout(src);
  const ChannelView v(p.shape(src), layout);
  if (v.inner == 1) {
    return row_moments(p, name, {layout, p.format(src)}, src, mean, variance);
  }
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
                        channel_sum(v, c, x, [=](int64_t i) { return double(x[i]); }) / count;
                    const double squares = channel_sum(v, c, x, [=](int64_t i) {
                      const double d = x[i] - centre;
                      return d * d;
                    });
                    m[c] = float(centre);
                    var[c] = float(squares / count);
                  }};
  };
  p.step(std::move(step));
}

void CpuDevice::channel_sums(Program& p, const std::string& name, const ChannelTerms& terms,
                             Gradient sum_a, Gradient sum_ab) {
  const TensorId a = terms.a;
  const bool dot = terms.b != kNoTensor, plain = sum_a.tensor != kNoTensor;
  // The float32 gradient of an inner product is, or will be, stored with the batch innermost,
  // unless it has so many rows that they are those of sequences.
  constexpr int64_t kMostRows = 1024;
  const Extents e(p.shape(a));
  const bool features = e.s == 1 && e.n < kMostRows && !dot && p.format(a) == Format::kFloat32;
  const Layout layout = features ? Layout::kFeatures : p.layout(a);
  const ChannelView v(p.shape(a), layout);
  if (v.inner == 1) {
    return row_sums(p, name, {layout, p.format(a)}, terms, sum_a, sum_ab);
  }
  if (v.outer >= kManyRows) return row_sums(p, name, layout, terms, sum_a, sum_ab);
  Step step;
  step.name = name;
  step.kernel = std::string("vector ") + layout_name(layout);
  const TermReads reads = TermReads::of(p, layout, terms, &step);
  if (plain) step.writes.push_back(p.write(sum_a.tensor, Layout::kRowMajor));
  if (dot) step.writes.push_back(p.write(sum_ab.tensor, Layout::kRowMajor));
  step.make = [=, writes = step.writes](const Binder& at) {
    const auto* x = TermReads::address<float>(at, reads.a);
    const auto* y = TermReads::address<float>(at, reads.b);
    const auto* centres = TermReads::address<float>(at, reads.centre);
    float* to_a = plain ? at(writes[0]) : nullptr;
    float* to_ab = dot ? at(writes.back()) : nullptr;
    const RunContext* run = at.run();
    return Kernel{int(v.channels), [=](int c) {
                    if (to_a) {
                      put(to_a + c,
                          float(channel_sum(v, c, x, [=](int64_t i) { return double(x[i]); })),
                          sum_a.adds(*run));
                    }
                    if (to_ab) {
                      const double centre = centres ? centres[c] : 0;
                      const double sum =
                          channel_sum(v, c, x, [=](int64_t i) { return x[i] * (y[i] - centre); });
                      put(to_ab + c, float(sum), sum_ab.adds(*run));
                    }
                  }};
  };
  p.step(std::move(step));
}

}  // namespace cafetiere
