// SPDX-License-Identifier: Apache-2.0
// What a training will take of a process's memory, before it runs.
#pragma once

#include "core/graph/graph.h"
#include "core/model/proto/caffe.pb.h"
#include "core/plan/lower.h"

namespace cafetiere {

/// Bytes by what they hold, for one rank with one shard; more shards add a gradient or a few
/// (ceil(log2 shards)). The pages of a mapped LMDB, which the system takes back when it needs them,
/// and the file that an HDF5Data layer reads are not counted.
struct MemoryEstimate {
  int64_t parameters = 0, gradients = 0, history = 0;
  int64_t blobs = 0;       ///< the plan's arena: blobs, their gradients, scratch
  int64_t inputs = 0;      ///< the batch at work and those prepared ahead
  int64_t test_nets = 0;   ///< their blobs, batches, kernels, and parameters that only they have
  int64_t debug_info = 0;  ///< the second net that it looks into
  int64_t overhead = 0;  ///< code, generated kernels, stacks and bookkeeping: measured, not counted
  int64_t snapshot = 0;  ///< what a snapshot adds for as long as it is being written

  /// Between snapshots.
  int64_t of_a_step() const {
    return parameters + gradients + history + blobs + inputs + test_nets + debug_info + overhead;
  }
  /// The peak.
  int64_t total() const { return of_a_step() + snapshot; }
};

/// Of training `graph` by `plan`, laid out with gradients for the full batch, under a rule that keeps
/// `history_per_param` values for each weight; without test nets, debug_info and snapshots.
MemoryEstimate estimate_training(const Graph& graph, const PlanOutline& plan,
                                 int history_per_param);

/// Of running `plan` forward only.
MemoryEstimate estimate_scoring(const Graph& graph, const PlanOutline& plan);

/// What a test net takes beside the training net `owner`, whose weights it reads; `plan` is laid
/// out without gradients.
int64_t test_net_bytes(const Graph& owner, const Graph& graph, const PlanOutline& plan);

/// What a snapshot takes while `solver` makes it: in the binary form weights and history are there
/// as messages and as bytes, too; HDF5 takes a piece of the history. 0 for a solver that makes none.
int64_t snapshot_bytes(const Graph& graph, const caffe::SolverParameter& solver,
                       int history_per_param);

}  // namespace cafetiere
