// SPDX-License-Identifier: Apache-2.0
// The lowering of one layer to steps, for plans of whole nets and for nets run layer by layer.
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

/// Whether something is to be written to the gradient of a parameter: what is learned has one, and a
/// statistic is observed there. `forced`: every parameter has one.
bool wants_gradient(const Param& param, bool forced);

/// What a layer's steps are laid out between.
struct NodeTensors {
  std::vector<TensorId> bottoms;
  std::vector<Shape> top_shapes;
  std::vector<ParamTensors> params;
};

/// The layer between these tensors, as yet without steps.
LayerPlan layer_plan(const Node& node, Program& program, Device& device,
                     const NodeTensors& tensors);

/// No kernel has to think of blobs without values.
Status check_values(const Node& node, const LayerPlan& layer);

/// Lays out the forward steps of a layer that is no source, and sets its tops. Errors name the layer.
Status lower_node(const Node& node, LayerPlan& layer);

/// Lays out its backward steps; `layer` has all of the gradients that arrive and that are asked for,
/// and gets those of the bottoms.
Status lower_node_backward(const Node& node, LayerPlan& layer);

}  // namespace cafetiere
