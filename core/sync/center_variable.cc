// SPDX-License-Identifier: Apache-2.0
#include "core/sync/center_variable.h"

#include <algorithm>

#include "core/comm/shard_tree.h"

namespace cafetiere {

CenterVariable::CenterVariable(int rank, int workers, int64_t floats)
    : rank_(rank), offsets_(even_slices(size_t(floats), workers)) {}

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

void CenterVariable::remember(std::span<const float> weights) {
  std::lock_guard lock(mutex_);
  worker_.assign(weights.begin(), weights.end());
}

void CenterVariable::change(int slice, const Change& use) {
  std::lock_guard lock(mutex_);
  Slice& mine = at(slice);
  ++mine.served;
  use(mine.values, mine.inherited + mine.served);
}

void CenterVariable::read(int slice, std::span<float> values) {
  std::lock_guard lock(mutex_);
  std::ranges::transform(at(slice).values, values.begin(), [](double v) { return float(v); });
}

std::vector<int64_t> CenterVariable::served() const {
  std::lock_guard lock(mutex_);
  std::vector<int64_t> counts(offsets_.size() - 1);
  for (const auto& [slice, kept] : kept_) counts[size_t(slice)] = kept.served;
  return counts;
}

/// A slice that is not stored here yet belongs to a lost rank: it starts from this rank's worker,
/// with as many changes as the rank's own slice.
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
