// SPDX-License-Identifier: Apache-2.0
#include "core/sync/center_variable.h"

#include <algorithm>

#include "core/comm/shard_tree.h"

namespace cafetiere {

CenterVariable::CenterVariable(const caffe::SyncParameter& sync, int rank, int workers,
                               int64_t floats)
    : rank_(rank),
      workers_(workers),
      period_(sync.period()),
      rate_(moving_rate(sync)),
      factor_(server_factor(sync)),
      offsets_(even_slices(size_t(floats), workers)) {}

size_t CenterVariable::largest() const {
  size_t largest = 0;
  for (int slice = 0; slice < slices(); ++slice) largest = std::max(largest, range(slice).size());
  return largest;
}

void CenterVariable::start(std::span<const float> weights) {
  remember(weights);
  std::lock_guard lock(mutex_);
  at(rank_);
}

void CenterVariable::count_from(int64_t iter) {
  std::lock_guard lock(mutex_);
  first_iter_ = iter;
}

void CenterVariable::remember(std::span<const float> weights) {
  std::lock_guard lock(mutex_);
  worker_.assign(weights.begin(), weights.end());
}

void CenterVariable::exchange(int slice, std::span<float> values) {
  std::lock_guard lock(mutex_);
  Slice& mine = at(slice);
  ++mine.served;
  // The owner of a slice estimates the iterations of a worker from the exchanges.
  const int64_t iterations = first_iter_ + (mine.inherited + mine.served) * period_ / workers_;
  const float pull = rate_.at(iterations) * factor_.at(iterations);
  for (size_t i = 0; i < values.size(); ++i) {
    const float center = mine.values[i];
    mine.values[i] = (1 - pull) * center + pull * values[i];
    values[i] = center;
  }
}

void CenterVariable::read(int slice, std::span<float> values) {
  std::lock_guard lock(mutex_);
  std::ranges::copy(at(slice).values, values.begin());
}

std::vector<int64_t> CenterVariable::served() const {
  std::lock_guard lock(mutex_);
  std::vector<int64_t> counts(offsets_.size() - 1);
  for (const auto& [slice, kept] : kept_) counts[size_t(slice)] = kept.served;
  return counts;
}

/// A slice that is not stored here yet belongs to a lost rank: it starts from this rank's worker,
/// at the same point of the schedules as the rank's own slice.
CenterVariable::Slice& CenterVariable::at(int slice) {
  const auto found = kept_.find(slice);
  if (found != kept_.end()) return found->second;
  const auto from = worker_.begin();
  const Range r = range(slice);
  const auto own = kept_.find(rank_);
  return kept_[slice] = {{from + ptrdiff_t(r.begin), from + ptrdiff_t(r.end)},
                         own == kept_.end() ? 0 : own->second.served};
}

}  // namespace cafetiere
