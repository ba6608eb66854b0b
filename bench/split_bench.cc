// SPDX-License-Identifier: Apache-2.0
// Products of float32 as six products of bfloat16 with AMX, beside those of float32.
//
//   split_bench ROWS OUTPUTS DEPTH [SECONDS]
//
// Each number becomes the sum of three of bfloat16. Of the nine products of two such sums the six
// largest are added, small ones first, in sums over 128 of the depth. The rows are split in each
// pass, as activations would be, the weights beforehand. Two threads, three alternating rounds.
// Prints JSON: GFLOP/s of float32 and of the splits in each round, and the root mean square of both
// errors against double, relative to the root of the sum of the terms' squares.
#include <immintrin.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>
#include <vector>

#include "core/device/cpu/bf16_product.h"
#include "core/device/cpu/brgemm.h"
#include "core/device/isa.h"

namespace cafetiere {
namespace {

constexpr int64_t kPanel = 32, kBlock = 64, kSum = 128;  // outputs, rows, depth of a product
constexpr int kThreads = 2, kRounds = 3;

/// Memory that begins with a cache line: products whose rows cross lines are a third slower.
template <class T>
struct Lines {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};
  T* allocate(size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kLine)); }
  void deallocate(T* at, size_t) { ::operator delete(at, kLine); }
  bool operator==(const Lines&) const = default;
};
template <class T>
using Array = std::vector<T, Lines<T>>;
using Planes = std::array<Array<uint16_t>, 3>;

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16")
/// Rounds 16 numbers, and leaves what is missing to them.
inline void take_plane(__m512* rest, uint16_t* to) {
  const __m256i bits = __m256i(_mm512_cvtneps_pbh(*rest));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bits);
  *rest -= _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

void split(const float* from, int64_t count, Planes* to) {
  for (int64_t i = 0; i < count; i += 16) {
    __m512 rest = _mm512_loadu_ps(from + i);
    for (Array<uint16_t>& plane : *to) take_plane(&rest, plane.data() + i);
  }
}

/// Adds the sums of a product to the output, or starts it with them.
void add(const float* sums, int64_t ld, bool first, float* out) {
  for (int64_t r = 0; r < kBlock; ++r) {
    for (int64_t o = 0; o < kPanel; o += 16) {
      float* const to = out + r * ld + o;
      const __m512 sum = _mm512_loadu_ps(sums + r * kPanel + o);
      _mm512_storeu_ps(to, first ? sum : _mm512_add_ps(_mm512_loadu_ps(to), sum));
    }
  }
}
#pragma GCC pop_options

struct Problem {
  int64_t rows, outputs, depth;
  Array<float> source, weights, out;  // (rows, depth), (outputs, depth), (rows, outputs)
  Array<float> panels;                // weights as (panel, depth, lane)
  Planes panel_planes;                // as (panel, depth / 2, lane, 2)

  Problem(int64_t rows, int64_t outputs, int64_t depth)
      : rows(rows), outputs(outputs), depth(depth) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> number(-1, 1);
    source.resize(size_t(rows * depth));
    weights.resize(size_t(outputs * depth));
    out.resize(size_t(rows * outputs));
    for (float& x : source) x = number(random);
    for (float& x : weights) x = number(random);
    panels.resize(weights.size());
    for (auto& plane : panel_planes) plane.resize(weights.size());
    Planes flat = panel_planes;
    split(weights.data(), int64_t(weights.size()), &flat);
    for (int64_t o = 0; o < outputs; ++o) {
      for (int64_t k = 0; k < depth; ++k) {
        const int64_t panel = o / kPanel * depth * kPanel, lane = o % kPanel;
        panels[size_t(panel + k * kPanel + lane)] = weights[size_t(o * depth + k)];
        for (size_t p = 0; p < flat.size(); ++p) {
          panel_planes[p][size_t(panel + k / 2 * 2 * kPanel + 2 * lane + k % 2)] =
              flat[p][size_t(o * depth + k)];
        }
      }
    }
  }
};

void multiply(Problem& p, int64_t first, int64_t last) {
  const Brgemm product(kPanel, kBlock, p.depth, kPanel, p.depth, p.outputs, false);
  for (int64_t r = first; r < last; r += kBlock) {
    for (int64_t o = 0; o < p.outputs; o += kPanel) {
      product(p.panels.data() + o * p.depth, p.source.data() + r * p.depth,
              p.out.data() + r * p.outputs + o);
    }
  }
}

void multiply_split(Problem& p, int64_t first, int64_t last) {
  const bf16::TileScope tiles;
  const Bf16Product product(kPanel, kBlock, kSum, kPanel, p.depth, kPanel, false);
  constexpr std::array<std::pair<int, int>, 6> kPairs = {
      {{2, 0}, {1, 1}, {0, 2}, {1, 0}, {0, 1}, {0, 0}}};  // planes of weights and of rows
  Planes planes;
  for (auto& plane : planes) plane.resize(size_t(kBlock * p.depth));
  Array<float> sums(kBlock * kPanel);
  for (int64_t r = first; r < last; r += kBlock) {
    split(p.source.data() + r * p.depth, kBlock * p.depth, &planes);
    for (int64_t o = 0; o < p.outputs; o += kPanel) {
      for (int64_t k = 0; k < p.depth; k += kSum) {
        std::array<const uint16_t*, 6> a, b;
        for (size_t i = 0; i < kPairs.size(); ++i) {
          a[i] = p.panel_planes[size_t(kPairs[i].first)].data() + o * p.depth + k * kPanel;
          b[i] = planes[size_t(kPairs[i].second)].data() + k;
        }
        product(a.data(), b.data(), sums.data(), int64_t(kPairs.size()));
        add(sums.data(), p.outputs, k == 0, p.out.data() + r * p.outputs + o);
      }
    }
  }
}

using Multiply = void (*)(Problem&, int64_t first, int64_t last);

/// GFLOP/s of all threads together.
double rate(Problem& p, Multiply run, double seconds) {
  using Clock = std::chrono::steady_clock;
  std::array<double, kThreads> rates;
  const auto work = [&](int thread) {
    const int64_t share = p.rows / kThreads;
    const auto began = Clock::now();
    int64_t passes = 0;
    double spent = 0;
    for (; spent < seconds; ++passes) {
      run(p, thread * share, (thread + 1) * share);
      spent = std::chrono::duration<double>(Clock::now() - began).count();
    }
    rates[size_t(thread)] = 2e-9 * double(share * p.outputs * p.depth * passes) / spent;
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  return rates[0] + rates[1];
}

double error(const Problem& p) {
  double squares = 0;
  int64_t count = 0;
  for (int64_t r = 0; r < p.rows; r += 61) {
    for (int64_t o = 0; o < p.outputs; o += 7, ++count) {
      double sum = 0, terms = 0;
      for (int64_t k = 0; k < p.depth; ++k) {
        const double term =
            double(p.source[size_t(r * p.depth + k)]) * double(p.weights[size_t(o * p.depth + k)]);
        sum += term;
        terms += term * term;
      }
      const double off = double(p.out[size_t(r * p.outputs + o)]) - sum;
      squares += off * off / terms;
    }
  }
  return std::sqrt(squares / double(count));
}

int main_of(int argc, char** argv) {
  if (argc < 4) return std::fputs("split_bench ROWS OUTPUTS DEPTH [SECONDS]\n", stderr), 2;
  const int64_t rows = std::atoll(argv[1]), outputs = std::atoll(argv[2]),
                depth = std::atoll(argv[3]);
  if (rows % (kThreads * kBlock) != 0 || outputs % kPanel != 0 || depth % kSum != 0) {
    return std::fputs("rows, outputs and depth: multiples of 128, 32 and 128\n", stderr), 2;
  }
  if (instruction_set() != "amx") return std::fputs("this machine has no AMX\n", stderr), 1;
  Problem problem(rows, outputs, depth);
  const double seconds = argc > 4 ? std::atof(argv[4]) : 0.5;
  nlohmann::json told{{"rows", rows}, {"outputs", outputs}, {"depth", depth}};
  for (int round = 0; round < kRounds; ++round) {
    for (const auto& [name, run] :
         {std::pair<const char*, Multiply>{"float32", multiply}, {"split", multiply_split}}) {
      told[name]["gflops"].push_back(rate(problem, run, seconds));
      told[name]["error"] = error(problem);
    }
  }
  std::printf("%s\n", told.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace cafetiere

int main(int argc, char** argv) { return cafetiere::main_of(argc, argv); }
