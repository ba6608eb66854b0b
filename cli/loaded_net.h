// SPDX-License-Identifier: Apache-2.0
// A net read from a file, with its databases open.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/data_shapes.h"
#include "core/device/device.h"
#include "core/graph/graph.h"
#include "core/plan/plan.h"
#include "core/train/feeds.h"

namespace cafetiere {

/// For the commands that look at a net or run it without a solver. Parameters get memory and their
/// fillers' values when they are first needed.
struct LoadedNet {
  NetFeeds feeds;
  Graph graph;
  std::vector<float> weights, gradients;  ///< one arena each
  std::unique_ptr<Device> device;

  /// Opens a net in its state; with `shapes`, data need not be there: see open_or_state().
  static Result<std::unique_ptr<LoadedNet>> load(const NetChoice& choice, const Logger& log,
                                                 const TopShapes* shapes = nullptr);
  /// Reads `path`; phase, level and stages are in `state`. With `force_backward` every layer gets a
  /// gradient, whether or not a loss needs it.
  static Result<std::unique_ptr<LoadedNet>> load(const std::string& path,
                                                 const caffe::NetState& state, const Logger& log,
                                                 bool force_backward = false,
                                                 const TopShapes* shapes = nullptr);

  /// Plans from now on store products and activations in "float32", "bf16" or "auto", as SolverParameter.
  Status use_precision(const std::string& precision);
  /// Replaces parameters by those of a weights file; layers that the net does not have are logged, and one
  /// without weights on which the asked blobs depend.
  Status load_weights(const std::string& path, std::span<const int> asked, const Logger& log);

  /// What a plan would do and take; costs neither.
  Result<PlanOutline> outline(const PlanOptions& options) const;
  Result<std::unique_ptr<Plan>> compile(const PlanOptions& options);
  /// Whether any top counts towards a loss.
  bool has_loss() const;
  /// Puts the batch of a sub-step into the plan's inputs.
  Status fill(const Feed& feed, int64_t sub_step, Plan& plan) const;

 private:
  Status fill_parameters();
};

/// The layer of a step: steps are called by their layer's name, a space and what they do.
std::string layer_of(const std::string& step, const Graph& graph);

}  // namespace cafetiere
