// SPDX-License-Identifier: Apache-2.0
// Plan: a net compiled for one phase, one batch size and one device. A run walks a flat list of
// bound kernels, without allocations or lookups.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/device/device.h"
#include "core/device/host_memory.h"
#include "core/device/run_error.h"
#include "core/graph/graph.h"
#include "core/plan/lower.h"
#include "core/plan/row_pass.h"

namespace cafetiere {

/// The addresses of a net's parameters and their gradients, in the order of Graph::params(). A plan
/// without backward steps ignores the gradients.
struct ParamPointers {
  std::vector<float*> data, diff;
};

/// Pointers into one arena of data and one of gradients (or null).
ParamPointers param_pointers(const Graph& graph, float* data, float* diff);

class Plan {
 public:
  /// Lowers a net, places its buffers and binds the kernels to them. A device with a queue must
  /// outlive the plan.
  static Result<std::unique_ptr<Plan>> compile(const Graph& graph, Device& device,
                                               const ParamPointers& params,
                                               const PlanOptions& options);
  ~Plan() { wait(); }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  /// A blob that the caller fills or reads, row-major.
  struct Blob {
    std::string name;
    std::string layer;  ///< inputs only: the source layer
    Shape shape;
    float* data = nullptr;
    float* diff = nullptr;  ///< with feed_gradients: where the caller writes the gradient of an
                            ///< output
    float loss_weight = 0;  ///< outputs only
  };
  const std::vector<Blob>& inputs() const { return inputs_; }
  const std::vector<Blob>& outputs() const { return outputs_; }
  /// The gradients of the inputs (only where a layer was forced to propagate them).
  const std::vector<Blob>& input_diffs() const { return input_diffs_; }

  /// Runs all steps: forward, then backward if it was lowered. An error is a kernel's failure (such
  /// as a full disk); the values of the plan's blobs are then undefined.
  Status run(ThreadPool& pool, const RunContext& context);
  /// The same; during backward it calls `final_from` whenever more gradients of parameters are
  /// final: all gradients from this address to the end of their arena.
  using FinalFrom = std::function<void(const float*)>;
  Status run(ThreadPool& pool, const RunContext& context, const FinalFrom& final_from);
  Status run_forward(ThreadPool& pool, const RunContext& context);

  /// The weighted sum of all loss tops after a forward pass.
  float loss() const;

  std::vector<StepInfo> describe() const;
  /// Runs all steps once and adds the seconds of each to `seconds` (one entry per step). The time
  /// of a row pass is divided among its steps in proportion to the time spent in each.
  Status time(ThreadPool& pool, const RunContext& context, std::vector<double>& seconds);
  /// Bytes of activations, their gradients and scratch memory; 0 if the plan uses another plan's
  /// arena. Excludes the values computed from fixed parameters, which plans share.
  int64_t arena_bytes() const { return shares_arena_ ? 0 : arena_bytes_; }

 private:
  Plan() = default;
  Status bind(LoweredNet net, Device& device, const MemoryPlan& memory, const ParamPointers& params,
              const PlanOptions& options);
  Status take_arenas(Device& device, const MemoryPlan& memory, const PlanOptions& options);
  Status take_fixed(Device& device, int64_t bytes, const PlanOptions& options);
  std::vector<void*> place_buffers(const LoweredNet& net, const MemoryPlan& memory,
                                   const ParamPointers& params);
  float* hold(const Shape& shape);
  void bind_steps(const LoweredNet& net, const Binder& binder);
  void begin(ThreadPool& pool, const RunContext& context);
  void compute_fixed(ThreadPool& pool);
  struct Bound {
    Kernel kernel;
    StepInfo info;
    bool queued = false;  ///< runs in the device's queue
    bool waits = false;   ///< may use memory that the queue still uses
  };
  void start(ThreadPool& pool, const Bound& step);
  void wait() {
    if (queue_) queue_->wait();
  }
  Status finish();
  std::vector<Bound> steps_;
  std::map<size_t, RowPass> passes_;  // passes of several steps, keyed by the first one
  Queue* queue_ = nullptr;
  size_t hoisted_ = 0, first_backward_ = 0;
  std::shared_ptr<FixedValues> fixed_;
  bool fixed_ready_ = true;
  std::vector<const float*> final_from_;  // per step; null if it makes no more gradients final
  std::vector<Blob> inputs_, outputs_, input_diffs_;
  struct Loss {
    const float* data;
    int64_t count;
    float weight;
  };
  std::vector<Loss> losses_;
  RunContext context_;
  RunError error_;
  Memory arena_, device_arena_, fixed_arena_;
  int64_t arena_bytes_ = 0;
  bool shares_arena_ = false;
  std::vector<std::vector<float>> input_values_;  // inputs and fed gradients
};

}  // namespace cafetiere
