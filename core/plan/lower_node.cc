// SPDX-License-Identifier: Apache-2.0
#include "core/plan/lower_node.h"

#include <fmt/format.h>

namespace cafetiere {

Status check_blob(const std::string& name, const Shape& shape) {
  if (shape.count() > 0) return {};
  return invalid_argument(
      fmt::format("blob '{}' has no values: its shape is {}", name, shape.str()));
}

ParamTensors add_param(Program& program, const Param& param, bool wants_gradient) {
  const std::string name = fmt::format("{}[{}]", param.layer, param.index);
  ParamTensors tensors{.data = program.external(name, param.shape), .gradient = {}};
  if (wants_gradient) tensors.gradient.tensor = program.external(name + " diff", param.shape);
  return tensors;
}

bool wants_gradient(const Param& param, bool forced) {
  return param.kind == ParamKind::kStatistic || param.lr_mult != 0 || forced;
}

LoweringContext layer_plan(const Node& node, Program& program, Device& device,
                           const NodeTensors& tensors) {
  LoweringContext layer{.program = program,
                        .device = device,
                        .name = node.param.name(),
                        .train = node.param.phase() == caffe::TRAIN,
                        .bottoms = tensors.bottoms,
                        .top_shapes = tensors.top_shapes,
                        .propagate_down = node.propagate_down};
  layer.tops.assign(node.tops.size(), kNoTensor);
  layer.bottom_diffs.assign(node.bottoms.size(), kNoTensor);
  for (const ParamTensors& param : tensors.params) {
    layer.params.push_back(param.data);
    layer.param_diffs.push_back(param.gradient);
  }
  return layer;
}

Status check_values(const Node& node, const LoweringContext& layer) {
  for (size_t i = 0; i < layer.bottoms.size(); ++i) {
    CFT_TRY(check_blob(node.param.bottom(int(i)), layer.bottom_shape(i)).with_context(node.where));
  }
  for (size_t i = 0; i < layer.top_shapes.size(); ++i) {
    CFT_TRY(check_blob(node.param.top(int(i)), layer.top_shapes[i]).with_context(node.where));
  }
  return {};
}

Status lower_node(const Node& node, LoweringContext& layer) {
  CFT_TRY(check_values(node, layer));
  return node.layer->forward(layer).with_context(node.where);
}

Status lower_node_backward(const Node& node, LoweringContext& layer) {
  return node.layer->backward(layer).with_context(node.where);
}

}  // namespace cafetiere
