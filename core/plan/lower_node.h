// SPDX-License-Identifier: Apache-2.0
// Lowers one layer to steps, for plans of whole nets and for eager nets.
#pragma once

#include <vector>

#include "core/device/device.h"
#include "core/graph/graph.h"

namespace cafetiere {

/// A parameter and its gradient as tensors of a program.
struct ParamTensors {
  TensorId data = kNoTensor;
  Gradient gradient;  ///< kNoTensor if not needed
};

/// Adds a parameter to a program, with its gradient if wanted.
ParamTensors add_param(Program& program, const Param& param, bool wants_gradient);

/// Whether a parameter's gradient is written: a learned parameter has a gradient, and for a
/// statistic the new observation is stored there. `forced`: every parameter has one.
bool wants_gradient(const Param& param, bool forced);

/// The tensors that a layer's steps read and write.
struct NodeTensors {
  std::vector<TensorId> bottoms;
  std::vector<Shape> top_shapes;
  std::vector<ParamTensors> params;
};

/// The context of a layer with these tensors, without steps.
LoweringContext layer_plan(const Node& node, Program& program, Device& device,
                           const NodeTensors& tensors);

/// Refuses a blob without values.
Status check_blob(const std::string& name, const Shape& shape);

/// Rejects empty blobs, so that no kernel has to handle them.
Status check_values(const Node& node, const LoweringContext& layer);

/// Emits the forward steps of a layer other than a source, and sets its tops. Errors name the
/// layer.
Status lower_node(const Node& node, LoweringContext& layer);

/// Emits the backward steps. `layer` must hold the incoming gradients and the requested ones of the
/// parameters; it gets those of the bottoms.
Status lower_node_backward(const Node& node, LoweringContext& layer);

}  // namespace cafetiere
