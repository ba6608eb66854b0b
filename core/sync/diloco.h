// DiLoCo: replicas train apart for `period` iterations; the mean of their moves is the gradient of an
// outer step with Nesterov's momentum.
#pragma once

#include "core/sync/average.h"

namespace cafetiere {

/// Douillard et al., "DiLoCo: Distributed Low-Communication Training of Language Models"
/// (arXiv 2311.08105): d = start - mean; v = momentum * v + d; w = start - rate * (d + momentum * v).
/// Each replica keeps its own history. Statistics of layers, which have no gradient, take the mean.
/// Weights are the same bytes for any number of ranks.
class DiLoCo : public Average {
 public:
  DiLoCo(const SyncContext& context, ArenaUpdate update, const caffe::SyncParameter& sync,
         HistoryRule history);

  Result<SyncState> state() override;
  Status restore(const SyncState& state) override;

 protected:
  void outer_step(std::span<const float> start, std::span<float> mean) override;

 private:
  Group* const group_;
  const size_t floats_;
  const float rate_, momentum_;
  std::vector<float> velocity_;  // of this rank's slice
};

}  // namespace cafetiere
