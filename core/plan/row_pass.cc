// SPDX-License-Identifier: Apache-2.0
#include "core/plan/row_pass.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "core/device/map.h"

namespace cafetiere {
namespace {

constexpr size_t kMostSteps = 32;  ///< per pass; bounds the memory it keeps live and the search

bool contains(const std::vector<BufferId>& ids, BufferId id) {
  return std::ranges::find(ids, id) != ids.end();
}

bool overlap(const std::vector<BufferId>& a, const std::vector<BufferId>& b) {
  return std::ranges::any_of(a, [&](BufferId id) { return contains(b, id); });
}

/// A pass under construction.
class Pass {
 public:
  static bool begins_with(const Step& step) {
    return step.rows.count > 1 && step.rows.width <= kMapBlock && step.space == Space::kHost;
  }

  explicit Pass(const Step& first) : rows_(first.rows.count) { add(first); }

  /// Adds a step if it can run block by block after those of the pass.
  bool take(const Step& step) {
    const Rows& rows = step.rows;
    const bool alike = begins_with(step) && rows.count == rows_ &&
                       (block_ == 0 || rows.block == 0 || block_ == rows.block);
    if (!alike || size_ == kMostSteps) return false;
    for (size_t i = 0; i < step.reads.size(); ++i) {
      const auto written = writes_.find(step.reads[i]);
      if (written != writes_.end() && (!written->second || i >= rows.reads)) return false;
    }
    for (BufferId id : step.writes) {
      if (writes_.contains(id) || reads_.contains(id)) return false;
    }
    add(step);
    return true;
  }

  /// Whether the cost of a step is negligible next to the pass.
  bool is_small(const Program& program, const Step& step) const {
    const auto small = [&](BufferId id) {
      return program.buffers()[size_t(id)].bytes * 4 <= rows_ * width_ * int64_t(sizeof(float));
    };
    return step.flops == 0 && step.space == Space::kHost &&
           std::ranges::all_of(step.reads, small) && std::ranges::all_of(step.writes, small);
  }

 private:
  void add(const Step& step) {
    ++size_;
    width_ = std::max(width_, step.rows.width);
    block_ = std::max(block_, step.rows.block);
    reads_.insert(step.reads.begin(), step.reads.end());
    for (BufferId id : step.writes) writes_[id] = step.rows.writes;
  }

  int64_t rows_, width_ = 1, block_ = 0;
  size_t size_ = 0;
  std::set<BufferId> reads_;
  std::map<BufferId, bool> writes_;  // buffer -> written by row
};

}  // namespace

bool independent(const Step& a, const Step& b) {
  return !overlap(a.writes, b.reads) && !overlap(a.reads, b.writes) && !overlap(a.writes, b.writes);
}

void join_rows(Program& program, size_t begin, size_t end) {
  std::vector<Step>& steps = program.steps();
  std::vector<Step> ordered, later;
  size_t i = begin;
  while (i < end) {
    ordered.push_back(std::move(steps[i++]));
    if (!Pass::begins_with(ordered.back())) continue;
    Pass pass(ordered.back());
    for (; i < end; ++i) {
      const auto apart = [&](const Step& step) { return independent(step, steps[i]); };
      if (std::ranges::all_of(later, apart) && pass.take(steps[i])) {
        ordered.push_back(std::move(steps[i]));
        ordered.back().joined = true;
      } else if (later.size() < kMostSteps && pass.is_small(program, steps[i])) {
        later.push_back(std::move(steps[i]));
      } else {
        break;
      }
    }
    std::ranges::move(later, std::back_inserter(ordered));
    later.clear();
  }
  std::ranges::move(ordered, steps.begin() + ptrdiff_t(begin));
}

RowPass::RowPass(const std::vector<const Step*>& steps, const Binder& binder) {
  int64_t width = 1, least = 1;
  for (const Step* step : steps) {
    kernels_.push_back(step->make(binder));
    rows_ = step->rows.count;
    width = std::max(width, step->rows.width);
    block_ = std::max(block_, step->rows.block);
    least = std::max(least, step->rows.least);
  }
  if (block_ == 0) block_ = std::max(least, kMapBlock / width);
}

Kernel RowPass::kernel() const {
  if (kernels_.size() == 1) return kernels_[0];
  const auto run = [kernels = kernels_, rows = rows_, size = block_](int block) {
    const int64_t begin = block * size, end = std::min(rows, begin + size);
    for (const Kernel& kernel : kernels) kernel.run_rows(begin, end);
  };
  return {int((rows_ + block_ - 1) / block_), run};
}

Kernel RowPass::timed_kernel(std::vector<int64_t>* times) const {
  const auto run = [=, this](int block) {
    using Clock = std::chrono::steady_clock;
    const int64_t begin = block * block_, end = std::min(rows_, begin + block_);
    for (size_t i = 0; i < kernels_.size(); ++i) {
      const auto begun = Clock::now();
      kernels_[i].run_rows(begin, end);
      const std::chrono::nanoseconds spent = Clock::now() - begun;
      std::atomic_ref((*times)[i]).fetch_add(spent.count());
    }
  };
  return {int((rows_ + block_ - 1) / block_), run};
}

}  // namespace cafetiere
