// SPDX-License-Identifier: Apache-2.0
// Lowers a graph to steps and places their buffers: all of a plan that is known before memory is
// allocated and code is generated.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/device/device.h"
#include "core/device/host_memory.h"
#include "core/graph/graph.h"
#include "core/plan/memory.h"

namespace cafetiere {

/// Values that plans compute from parameters that never change: weights in the kernels' layouts,
/// statistics. Computed by the first run of any of the plans that share them: plans of one net with
/// the same options.
struct FixedValues {
  std::mutex mutex;
  Memory memory;
  int64_t bytes = 0;
  bool ready = false;
};

/// Options of lowering a net.
struct PlanOptions {
  int64_t batch = 0;            ///< rows of the sources; 0 = the net's own
  bool backward = false;        ///< lower the gradients too
  bool feed_gradients = false;  ///< the caller supplies the outputs' gradients (no loss needed)
  /// Blobs to keep readable; empty = the net's outputs. If given, layers that none of them needs
  /// are omitted.
  std::vector<std::string> outputs;
  /// A plan whose arena is shared if it is large enough. The values of neither plan may be needed
  /// after the other has run.
  const class Plan* beside = nullptr;
  /// Set if the parameters do not change after the first run and there is no backward: values that
  /// depend on parameters only are then computed once, and normalisations are folded into the
  /// layers before them.
  std::shared_ptr<FixedValues> fixed = nullptr;
  /// The plan applies the solver's update to each parameter (RunContext::update) once backward no
  /// longer needs it; its gradient is a temporary of the plan. Requires the batch to be a whole
  /// iteration.
  bool updates = false;
  /// Compute sums and ReLUs in the steps of one of the terms (endings.h); does not change the values.
  bool endings = true;
  /// Compute parts of a concatenation in their places (concat_in_place.h); does not change the
  /// values.
  bool concat_in_place = true;
  /// Combine steps over the same rows of large tensors in one pass over memory (row_pass.h); does
  /// not change the values.
  bool row_passes = true;
  /// Compute large results of cheap steps again for backward instead of keeping them (recompute.h);
  /// does not change the values.
  bool recompute = true;
};

/// Description of a step, for `explain` and `time`.
struct StepInfo {
  std::string name, kernel;
  double flops;  ///< multiply-add = 2; counts products and sums of products only, else 0
  bool backward;
  int64_t bytes;       ///< of the buffers it reads and writes, each counted once and whole
  std::string format;  ///< of its inputs, and of its outputs if different: "bfloat16>float32"
};

/// A net as the steps of a device. Its external buffers are the inputs, the gradients supplied by
/// the caller, the parameters and their gradients.
struct LoweredNet {
  /// A blob that the caller fills or reads, row-major.
  struct Blob {
    std::string name;
    std::string layer;  ///< inputs only: the source layer
    Shape shape;
    BufferId data = kNoBuffer;
    BufferId diff = kNoBuffer;  ///< outputs only, with feed_gradients
    float loss_weight = 0;      ///< outputs only
  };
  /// A top that counts towards the objective.
  struct Loss {
    BufferId data;
    int64_t count;
    float weight;
  };

  Program program;
  size_t hoisted = 0;         ///< steps at the front that run once only
  size_t first_backward = 0;  ///< index of the first backward step
  std::vector<Blob> inputs, outputs;
  std::vector<Blob> input_diffs;  ///< the gradients that reach the inputs
  std::vector<Loss> losses;
  std::vector<BufferId> params;     ///< indexed as Graph::params()
  std::vector<BufferId> gradients;  ///< likewise; kNoBuffer: none, or owned by the plan

  std::vector<StepInfo> steps() const;
};

/// Emits the steps of all layers. The result refers to the device, but not to `graph`.
Result<LoweredNet> lower(const Graph& graph, Device& device, const PlanOptions& options);

/// The steps and memory of a plan that is lowered and placed, but not bound.
struct PlanOutline {
  std::vector<LoweredNet::Blob> inputs, outputs;
  std::vector<StepInfo> steps;
  int64_t arena_bytes = 0;  ///< host memory for activations, their gradients and scratch
  bool updates = false;     ///< whether arena_bytes includes the gradients of parameters

  static Result<PlanOutline> make(const Graph& graph, Device& device, const PlanOptions& options);
};

}  // namespace cafetiere
