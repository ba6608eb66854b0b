// What a training will take of a process's memory, before it runs.
#pragma once

#include "core/graph/graph.h"
#include "core/plan/plan.h"

namespace cafetiere {

/// Bytes by what they hold, for one rank with one shard; more shards add a gradient or a few
/// (ceil(log2 shards)). A snapshot takes several times the weights besides, for as long as it lasts.
struct MemoryEstimate {
  int64_t parameters = 0, gradients = 0, history = 0;
  int64_t blobs = 0;     ///< the plan's arena: blobs, their gradients, scratch
  int64_t inputs = 0;    ///< the batch at work and those prepared ahead
  int64_t overhead = 0;  ///< code, generated kernels, stacks and bookkeeping: measured, not counted

  int64_t total() const { return parameters + gradients + history + blobs + inputs + overhead; }
};

/// Of training `graph` by `plan`, compiled with gradients for the full batch, under a rule that keeps
/// `history_per_param` values for each weight.
MemoryEstimate estimate_training(const Graph& graph, const Plan& plan, int history_per_param);

/// Of running `plan` forward only.
MemoryEstimate estimate_scoring(const Graph& graph, const Plan& plan);

}  // namespace cafetiere
