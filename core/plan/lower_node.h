// SPDX-License-Identifier: Apache-2.0
// The lowering of one layer to steps, for plans of whole nets and for eager nets.
#pragma once

#include <vector>

#include "core/device/device.h"
#include "core/graph/graph.h"

namespace cafetiere {

/// A parameter as tensors of a program.
struct ParamTensors {
  TensorId data = kNoTensor;
  Gradient gradient;  ///< kNoTensor where none is wanted
};

/// Adds a parameter to a program, and its gradient if one is wanted.
ParamTensors add_param(Program& program, const Param& param, bool wants_gradient);

/// Whether a parameter's gradient is written: a learned one has a gradient, and a statistic's new
/// observation is stored there. `forced`: every parameter has one.
bool wants_gradient(const Param& param, bool forced);

/// The tensors that a layer's steps read and write.
struct NodeTensors {
  std::vector<TensorId> bottoms;
  std::vector<Shape> top_shapes;
  std::vector<ParamTensors> params;
};

/// The layer between these tensors, without steps yet.
LoweringContext layer_plan(const Node& node, Program& program, Device& device,
                           const NodeTensors& tensors);

/// Refuses empty blobs, so that no kernel has to handle them.
Status check_values(const Node& node, const LoweringContext& layer);

/// Emits the forward steps of a layer that is no source, and sets its tops. Errors name the layer.
Status lower_node(const Node& node, LoweringContext& layer);

/// Emits its backward steps; `layer` has all of the gradients that arrive and that are asked for,
/// and gets those of the bottoms.
Status lower_node_backward(const Node& node, LoweringContext& layer);

}  // namespace cafetiere
