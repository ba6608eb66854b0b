// SPDX-License-Identifier: Apache-2.0
// Estimates the memory of a training process before it runs.
#pragma once

#include "core/graph/graph.h"
#include "core/model/proto/caffe.pb.h"
#include "core/plan/lower.h"

namespace cafetiere {

/// Bytes by purpose, for one rank with one shard. A single rank may have a plan with `updates`: the
/// gradients are then part of the blobs. Not counted: the pages of a mapped LMDB, which the system
/// can reclaim, and the file read by an HDF5Data layer.
struct MemoryEstimate {
  int64_t parameters = 0, gradients = 0, history = 0;
  int64_t sync = 0;        ///< what the mode keeps beside those: sync_bytes()
  int64_t blobs = 0;       ///< the plan's arena: blobs, their gradients, scratch
  int64_t inputs = 0;      ///< the current batch and the prefetched ones
  int64_t test_nets = 0;   ///< their blobs, batches, kernels, and parameters not shared with the
                           ///< training net
  int64_t debug_info = 0;  ///< its eager net
  int64_t overhead = 0;    ///< code, generated kernels, stacks and bookkeeping: measured, not
                           ///< computed
  int64_t snapshot = 0;    ///< additional memory while a snapshot is written

  /// Memory between snapshots.
  int64_t of_a_step() const {
    return parameters + gradients + history + sync + blobs + inputs + test_nets + debug_info +
           overhead;
  }
  /// Peak memory.
  int64_t total() const { return of_a_step() + snapshot; }
};

/// The estimate for training `graph` with `plan`, made with gradients for the full batch, and an
/// update rule with `history_per_param` history values per weight; without test nets, debug_info
/// and snapshots.
MemoryEstimate estimate_training(const Graph& graph, const PlanOutline& plan,
                                 int history_per_param);

/// What the mode of `sync` keeps on a rank with so many shards, beside weights, gradients and a
/// history: further histories, sums and copies. `alone`: there is no other rank.
int64_t sync_bytes(const Graph& graph, const caffe::SyncParameter& sync, int history_per_param,
                   int shards, bool alone);

/// The estimate for running `plan` forward only.
MemoryEstimate estimate_scoring(const Graph& graph, const PlanOutline& plan);

/// The memory that a test net adds to the training net `owner`, whose weights it uses; `plan` is
/// made without gradients.
int64_t test_net_bytes(const Graph& owner, const Graph& graph, const PlanOutline& plan);

/// The memory that writing a snapshot of `solver` takes: the binary format holds weights and
/// history both as messages and as serialized bytes; HDF5 a piece of the history. 0 without
/// snapshots.
int64_t snapshot_bytes(const Graph& graph, const caffe::SolverParameter& solver,
                       int history_per_param);

}  // namespace cafetiere
