// SPDX-License-Identifier: Apache-2.0
#include "core/train/memory_estimate.h"

#include <algorithm>
#include <bit>

#include "core/graph/arena.h"
#include "core/model/file.h"
#include "core/sync/modes.h"

namespace cafetiere {
namespace {

constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kBatchesHeld = 2;  // Prefetch
// Resident memory of a training process beyond that of one just started and what is counted here:
// mainly tables of generated kernels, and code.
constexpr int64_t kOverhead = 15 << 20;
constexpr int64_t kTestNetOverhead = 2 << 20;  // its own kernels

int64_t input_bytes(const PlanOutline& plan) {
  int64_t floats = 0;
  for (const LoweredNet::Blob& input : plan.inputs) floats += input.shape.count();
  return floats * kFloat;
}

}  // namespace

MemoryEstimate estimate_training(const Graph& graph, const PlanOutline& plan,
                                 int history_per_param) {
  const int64_t arena = graph.arena_size() * kFloat;
  return {.parameters = arena,
          .gradients = plan.updates ? 0 : arena,
          .history = arena * history_per_param,
          .blobs = plan.arena_bytes,
          .inputs = input_bytes(plan) * (1 + kBatchesHeld),
          .overhead = kOverhead};
}

int64_t sync_bytes(const Graph& graph, const caffe::SyncParameter& sync, int history_per_param,
                   int shards, bool alone) {
  const SyncMode* mode = find_sync_mode(sync.mode());
  if (!mode) return 0;
  const bool compressed = sync.compression() != "none";  // one sum, error feedback, what is sent
  const int sums = compressed ? 3 : int(std::bit_width(unsigned(shards - 1)));  // of 1, 2, 4 shards
  int arrays = mode->arrays + sums;
  if (mode->own_history) arrays += (shards - 1) * history_per_param;
  if (alone) --arrays;
  return arrays * graph.arena_size() * kFloat;
}

MemoryEstimate estimate_scoring(const Graph& graph, const PlanOutline& plan) {
  return {.parameters = graph.arena_size() * kFloat,
          .blobs = plan.arena_bytes,
          .inputs = input_bytes(plan),
          .overhead = kOverhead};
}

int64_t test_net_bytes(const Graph& owner, const Graph& graph, const PlanOutline& plan) {
  const int64_t own = covers(owner, graph) ? 0 : graph.arena_size() * kFloat;
  return own + plan.arena_bytes + input_bytes(plan) + kTestNetOverhead;
}

int64_t snapshot_bytes(const Graph& graph, const caffe::SolverParameter& solver,
                       int history_per_param) {
  if (solver.snapshot() == 0 && !solver.snapshot_after_train()) return 0;
  // An HDF5 file is written directly from the weights, with the history piece by piece; a binary
  // file from a message that is serialized first.
  const int64_t arena = graph.arena_size() * kFloat;
  const int64_t moved = solver.snapshot_diff() ? arena : 0;  // the weights before the last update
  const bool fits = int64_t(binary_bytes(graph, moved > 0)) <= kMaxFileBytes &&
                    arena * history_per_param <= kMaxFileBytes;
  if (!fits || solver.snapshot_format() == caffe::SolverParameter::HDF5) {
    const int64_t piece = std::min(arena, int64_t(kHdf5PieceFloats) * kFloat);
    return 2 * moved + (history_per_param > 0 ? piece : 0);
  }
  return 2 * moved + 2 * std::max(arena + moved, arena * history_per_param);
}

}  // namespace cafetiere
