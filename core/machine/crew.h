// SPDX-License-Identifier: Apache-2.0
// Crew: threads that measure at the same time.
#pragma once

#include <algorithm>
#include <barrier>
#include <chrono>
#include <numeric>
#include <vector>

#include "core/base/thread_pool.h"

namespace cafetiere {

/// Runs short samples on several threads at once. What counts of each thread is its fastest sample: the
/// others shared the core with other work.
class Crew {
 public:
  explicit Crew(int threads) : pool_(threads) {}
  int threads() const { return pool_.threads(); }

  /// Calls f(thread) once on each thread, all begun together.
  template <class F>
  void each(const F& f) {
    std::barrier together(threads());
    pool_.run(threads(), [&](int thread) {
      together.arrive_and_wait();  // so that no thread takes two of the blocks
      f(thread);
    });
  }

  /// The sum over the threads of the best rate, work / seconds, of sample(thread), which returns the work
  /// that it has done.
  template <class F>
  double rate(const F& sample, double seconds) {
    std::vector<double> best(size_t(threads()), 0);
    each([&](int thread) {
      best[size_t(thread)] = best_rate([&] { return sample(thread); }, seconds);
    });
    return std::accumulate(best.begin(), best.end(), 0.0);
  }

  /// The best rate of samples on the calling thread, as many as there is time for.
  template <class F>
  static double best_rate(const F& sample, double seconds) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    double best = 0;
    for (auto begun = Clock::now(); begun < end;) {
      const double work = sample();
      const auto now = Clock::now();
      best = std::max(best, work / std::chrono::duration<double>(now - begun).count());
      begun = now;
    }
    return best;
  }

 private:
  ThreadPool pool_;
};

}  // namespace cafetiere
