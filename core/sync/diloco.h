// SPDX-License-Identifier: Apache-2.0
// DiLoCo: replicas train apart for `period` iterations; the mean of their moves is the gradient of an
// outer step with Nesterov's momentum.
#pragma once

#include "core/sync/average.h"
#include "core/sync/outer_step.h"

namespace cafetiere {

/// The outer step is core/sync/outer_step.h's. Each replica keeps its own history. Statistics of layers, which have no gradient, take the mean.
/// Weights are the same bytes for any number of ranks.
class DiLoCo : public Average {
 public:
  DiLoCo(const SyncContext& context, ArenaUpdate update, const caffe::SyncParameter& sync,
         HistoryRule history, Exchange exchange = {});

  Result<SyncState> state() override;
  Status restore(const SyncState& state) override;

 protected:
  void outer_step(std::span<const float> start, std::span<float> mean) override;

 private:
  Group* const group_;
  const size_t floats_;
  OuterStep outer_;  // of this rank's slice
};

}  // namespace cafetiere
