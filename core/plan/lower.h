// SPDX-License-Identifier: Apache-2.0
// Lowers a graph to steps and places their buffers: all that can be known of a plan before memory
// is allocated and code is generated.
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

/// What plans compute of parameters that never change: weights as kernels want them, statistics. The
/// first run of any plan does, for all that share it: those of one net, made with the same options.
struct FixedValues {
  std::mutex mutex;
  Memory memory;
  int64_t bytes = 0;
  bool ready = false;
};

/// What to lower of a net.
struct PlanOptions {
  int64_t batch = 0;            ///< rows of the sources; 0 = what the net says
  bool backward = false;        ///< lower the gradients too
  bool feed_gradients = false;  ///< the caller supplies the outputs' gradients (no loss needed)
  /// Blobs to keep readable; empty = the net's outputs. With a list, layers that none of them needs
  /// are left out.
  std::vector<std::string> outputs;
  /// A plan whose arena is used where it is large enough. Neither plan's values may be needed once
  /// the other has run.
  const class Plan* beside = nullptr;
  /// The parameters will not change after the first run, and there is no backward: what is computed of
  /// them alone is computed once, and normalisations are folded into the layers before them.
  std::shared_ptr<FixedValues> fixed = nullptr;
  /// The plan takes the solver's step of each parameter (RunContext::update) once backward is done with
  /// it; its gradient is a temporary of the plan. For a batch that is a whole iteration.
  bool updates = false;
  /// Steps on the same rows of large tensors are done in one pass over memory (row_pass.h); the values
  /// are the same without.
  bool row_passes = true;
  /// Large results of cheap steps are computed again for backward instead of being kept until then
  /// (recompute.h); the values are the same without.
  bool recompute = true;
};

/// What a step is, for `explain` and `time`.
struct StepInfo {
  std::string name, kernel;
  double flops;  ///< of products and sums of products, a multiply-add being two; 0 for all others
  bool backward;
  int64_t bytes;  ///< of the buffers it reads and of those it writes, each one whole and once
  std::string
      format;  ///< of what it reads, and of what it writes if that is another: "bfloat16>float32"
};

inline constexpr BufferId kNoBuffer = -1;

/// A net as the steps of a device. Its external buffers are the inputs, the gradients that a caller
/// supplies, the parameters and their gradients.
struct LoweredNet {
  /// A blob that the caller fills or reads, row-major.
  struct Blob {
    std::string name;
    std::string layer;  ///< of an input: the source layer
    Shape shape;
    BufferId data = kNoBuffer;
    BufferId diff = kNoBuffer;  ///< of an output, with feed_gradients
    float loss_weight = 0;      ///< of an output
  };
  /// A top that counts towards the objective.
  struct Loss {
    BufferId data;
    int64_t count;
    float weight;
  };

  Program program;
  size_t hoisted = 0;         ///< steps at the front that only the first run needs
  size_t first_backward = 0;  ///< the step with which backward begins
  std::vector<Blob> inputs, outputs;
  std::vector<Blob> input_diffs;  ///< the gradients that reach the inputs
  std::vector<Loss> losses;
  std::vector<BufferId> params;     ///< by Graph::params()
  std::vector<BufferId> gradients;  ///< the same; kNoBuffer: none, or the plan's own

  std::vector<StepInfo> steps() const;
};

/// Emits the steps of all layers. The result refers to the device, but to nothing of `graph`.
Result<LoweredNet> lower(const Graph& graph, Device& device, const PlanOptions& options);

/// The steps and memory of a plan: lowered and placed, but not bound.
struct PlanOutline {
  std::vector<LoweredNet::Blob> inputs, outputs;
  std::vector<StepInfo> steps;
  int64_t arena_bytes =
      0;  ///< of the host, for activations, gradients of activations and scratch memory
  bool updates = false;  ///< and for the parameters' gradients

  static Result<PlanOutline> make(const Graph& graph, Device& device, const PlanOptions& options);
};

}  // namespace cafetiere
