// SPDX-License-Identifier: Apache-2.0
// Estimates the memory of a training process before it runs.
#pragma once

#include "core/graph/graph.h"
#include "core/model/proto/caffe.pb.h"
#include "core/plan/lower.h"

namespace cafetiere {

/// Bytes by purpose, for one rank with one shard; more shards add a gradient or a few
/// (ceil(log2 shards)). A rank alone may have a plan with `updates`: then the gradients are among the
/// blobs. The pages of a mapped LMDB, which the system takes back when it needs them,
/// and the file that an HDF5Data layer reads are not counted.
struct MemoryEstimate {
  int64_t parameters = 0, gradients = 0, history = 0;
  int64_t blobs = 0;       ///< the plan's arena: blobs, their gradients, scratch
  int64_t inputs = 0;      ///< the current batch and those prefetched
  int64_t test_nets = 0;   ///< their blobs, batches, kernels, and parameters that only they have
  int64_t debug_info = 0;  ///< its eager net
  int64_t overhead = 0;  ///< code, generated kernels, stacks and bookkeeping: measured, not counted
  int64_t snapshot = 0;  ///< what a snapshot adds while it is written

  /// Between snapshots.
  int64_t of_a_step() const {
    return parameters + gradients + history + blobs + inputs + test_nets + debug_info + overhead;
  }
  /// The peak.
  int64_t total() const { return of_a_step() + snapshot; }
};

/// Of training `graph` by `plan`, made with gradients for the full batch, under a rule that keeps
/// `history_per_param` values per weight; without test nets, debug_info and snapshots.
MemoryEstimate estimate_training(const Graph& graph, const PlanOutline& plan,
                                 int history_per_param);

/// Of running `plan` forward only.
MemoryEstimate estimate_scoring(const Graph& graph, const PlanOutline& plan);

/// What a test net adds to the training net `owner`, whose weights it reads; `plan` is made without
/// gradients.
int64_t test_net_bytes(const Graph& owner, const Graph& graph, const PlanOutline& plan);

/// What a snapshot of `solver` takes while it is written: the binary format holds weights and
/// history as messages and as bytes, too; HDF5 a piece of the history. 0 without snapshots.
int64_t snapshot_bytes(const Graph& graph, const caffe::SolverParameter& solver,
                       int history_per_param);

}  // namespace cafetiere
