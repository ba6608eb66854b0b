#include "core/train/memory_estimate.h"

namespace cafetiere {
namespace {

constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kBatchesAhead = 3;  // Prefetch: two filled ones and the one being used
// By which the resident memory of a process that trains exceeds that of one that has only started,
// beside what is counted here: mostly tables of generated kernels, and code.
constexpr int64_t kOverhead = 14 << 20;

int64_t input_bytes(const Plan& plan) {
  int64_t floats = 0;
  for (const Plan::Blob& input : plan.inputs()) floats += input.shape.count();
  return floats * kFloat;
}

}  // namespace

MemoryEstimate estimate_training(const Graph& graph, const Plan& plan, int history_per_param) {
  const int64_t arena = graph.arena_size() * kFloat;
  return {.parameters = arena,
          .gradients = arena,
          .history = arena * history_per_param,
          .blobs = plan.arena_bytes(),
          .inputs = input_bytes(plan) * (1 + kBatchesAhead),
          .overhead = kOverhead};
}

MemoryEstimate estimate_scoring(const Graph& graph, const Plan& plan) {
  return {.parameters = graph.arena_size() * kFloat,
          .blobs = plan.arena_bytes(),
          .inputs = input_bytes(plan),
          .overhead = kOverhead};
}

}  // namespace cafetiere
