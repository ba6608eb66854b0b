// SPDX-License-Identifier: Apache-2.0
#include "core/plan/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/device/isa.h"
#include "core/graph/needed.h"
#include "core/model/nearest.h"
#include "core/plan/concat_in_place.h"
#include "core/plan/endings.h"
#include "core/plan/fold.h"
#include "core/plan/fusion.h"
#include "core/plan/lower_node.h"
#include "core/plan/param_updates.h"
#include "core/plan/recompute.h"
#include "core/plan/row_pass.h"

namespace cafetiere {
namespace {

/// Lowers the layers of a net, forward and then backward.
class Lowering {
 public:
  Lowering(const Graph& graph, Device& device, const PlanOptions& options, LoweredNet* net)
      : graph_(graph), device_(device), options_(options), net_(*net), program_(net->program) {}

  Status run() {
    CFT_ASSIGN(shapes_, graph_.infer(options_.batch));
    blobs_.assign(shapes_.size(), kNoTensor);
    diffs_.assign(shapes_.size(), kNoTensor);
    CFT_TRY(choose_nodes());
    if (options_.fixed) {
      program_.fix_parameters();
      folds_ = choose_folds(graph_, needed_, kept_);
    }
    fused_ = choose_fusions(graph_, folds_, needed_, kept_);
    add_params();
    CFT_TRY(forward());
    if (options_.fixed) net_.hoisted = program_.hoist(net_.params);
    net_.first_backward = program_.steps().size();
    if (options_.backward) CFT_TRY(backward());
    if (options_.endings) {
      net_.first_backward = merge_endings(program_, net_.hoisted, net_.first_backward);
      merge_endings(program_, net_.first_backward, program_.steps().size());
    }
    if (options_.concat_in_place) {
      net_.first_backward = concat_in_place(program_, net_.hoisted, net_.first_backward);
      concat_in_place(program_, net_.first_backward, program_.steps().size());
    }
    if (options_.backward && options_.recompute) recompute_rows(program_, net_.first_backward);
    if (options_.row_passes) {
      join_rows(program_, net_.hoisted, net_.first_backward);
      join_rows(program_, net_.first_backward, program_.steps().size());
    }
    if (options_.updates) update_params();
    return {};
  }

 private:
  Status choose_nodes() {
    if (options_.outputs.empty()) {
      needed_.assign(graph_.nodes().size(), true);
      kept_ = graph_.outputs();
      return {};
    }
    for (const std::string& name : options_.outputs) {
      const int blob = graph_.find_blob(name);
      if (blob < 0) {
        return not_found(fmt::format("the net has no blob '{}'{}", name,
                                     did_you_mean(name, graph_.blob_names())));
      }
      kept_.push_back(blob);
    }
    needed_ = needed_nodes(graph_, kept_);
    return {};
  }

  /// The scale that a node applies, otherwise the node itself.
  const Node& last_of(size_t n) const {
    return graph_.nodes()[fused_[n].scale < 0 ? n : size_t(fused_[n].scale)];
  }

  /// The parameters of a node, followed by those of the scale that it applies.
  std::vector<int> params_of(size_t n) const {
    std::vector<int> params = graph_.nodes()[n].params;
    if (fused_[n].scale < 0) return params;
    params.insert(params.end(), last_of(n).params.begin(), last_of(n).params.end());
    return params;
  }

  void add_params() {
    const bool forced = options_.feed_gradients || graph_.force_backward();
    for (const Param& p : graph_.params()) {
      params_.push_back(add_param(program_, p, options_.backward && wants_gradient(p, forced)));
      net_.params.push_back(external(params_.back().data));
      const TensorId gradient = params_.back().gradient.tensor;
      net_.gradients.push_back(gradient == kNoTensor ? kNoBuffer : external(gradient));
    }
  }

  void update_params() {
    std::vector<SteppedParam> params;
    for (size_t i = 0; i < params_.size(); ++i) {
      const BufferId gradient = std::exchange(net_.gradients[i], kNoBuffer);
      if (gradient == kNoBuffer) continue;
      params.push_back({i, graph_.params()[i].layer, net_.params[i], gradient});
    }
    add_param_updates(program_, net_.first_backward, params);
  }

  /// The only buffer of an external tensor.
  BufferId external(TensorId id) { return program_.read(id, Layout::kRowMajor); }

  Status forward() {
    layers_.resize(graph_.nodes().size());
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      if (!needed_[n]) continue;
      LoweringContext& layer =
          layers_[n].emplace(layer_plan(node, program_, device_, tensors_of(n)));
      if (node.type->source) {
        CFT_TRY(check_values(node, layer));
        add_inputs(node, layer);
      } else if (fused_[n].applied) {
        layer.tops[0] = layer.bottoms[0];
      } else {
        layer.fuse_relu = fused_[n].relu;
        fold_into(n, layer);
        CFT_TRY(lower_node(node, layer));
      }
      for (size_t i = 0; i < node.tops.size(); ++i) blobs_[size_t(node.tops[i])] = layer.tops[i];
    }
    keep_outputs();
    return {};
  }

  /// Replaces a layer's weights and bias with those that its followers are folded into.
  void fold_into(size_t n, LoweringContext& layer) {
    for (size_t follower : folds_.followers(n)) {
      const Node& node = graph_.nodes()[follower];
      NodeTensors tensors;
      for (int p : node.params) tensors.params.push_back(params_[size_t(p)]);
      LoweringContext context = layer_plan(node, program_, device_, tensors);
      fold(node.layer->channel_affine(context), graph_.nodes()[n].param_shapes[0], layer);
    }
  }

  /// A bottom or the gradient of a top, in a number format that the layer accepts.
  TensorId as_taken(const Node& node, TensorId id) {
    if (id == kNoTensor || node.type->any_format) return id;
    return program_.in_format(id, Format::kFloat32);
  }

  NodeTensors tensors_of(size_t n) {
    const Node& node = graph_.nodes()[n];
    NodeTensors tensors;
    for (int blob : node.bottoms) tensors.bottoms.push_back(as_taken(node, blobs_[size_t(blob)]));
    for (int blob : node.tops) tensors.top_shapes.push_back(shapes_[size_t(blob)]);
    for (int p : params_of(n)) {
      tensors.params.push_back(params_[size_t(p)]);
    }
    return tensors;
  }

  void add_inputs(const Node& node, LoweringContext& layer) {
    for (size_t i = 0; i < node.tops.size(); ++i) {
      layer.tops[i] = program_.external(node.param.top(int(i)), layer.top_shapes[i]);
      net_.inputs.push_back({node.param.top(int(i)), node.param.name(), layer.top_shapes[i],
                             external(layer.tops[i])});
    }
  }

  void keep_outputs() {
    for (int blob : kept_) {
      if (blobs_[size_t(blob)] == kNoTensor) continue;
      net_.outputs.push_back({graph_.blob_names()[size_t(blob)], "", shapes_[size_t(blob)],
                              program_.keep(blobs_[size_t(blob)])});
    }
    for_losses([&](const Node& node, size_t top) {
      const int blob = node.tops[top];
      const float weight = node.loss_weights[top];
      net_.losses.push_back(
          {program_.keep(blobs_[size_t(blob)]), shapes_[size_t(blob)].count(), weight});
      for (size_t k = 0; k < kept_.size(); ++k) {
        if (kept_[k] == blob) net_.outputs[k].loss_weight = weight;
      }
    });
  }

  /// Calls `visit` for each top that counts towards the objective.
  template <class Visit>
  void for_losses(Visit visit) const {
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      for (size_t i = 0; i < node.tops.size() && needed_[n]; ++i) {
        if (node.loss_weights[i] != 0) visit(node, i);
      }
    }
  }

  Status backward() {
    if (options_.feed_gradients) {
      feed_gradients();
    } else {
      for_losses([&](const Node& node, size_t top) { seed_gradient(node, top); });
    }
    for (size_t n = graph_.nodes().size(); n-- > 0;) {
      const Node& node = graph_.nodes()[n];
      if (!needed_[n] || node.type->source) continue;
      if (fused_[n].applied && node.type->is_channel_scale) {
        diffs_[size_t(node.bottoms[0])] = diffs_[size_t(node.tops[0])];
      } else if (last_of(n).needs_backward) {
        CFT_TRY(lower_backward(n, *layers_[n]));
      }
    }
    keep_input_diffs();
    return {};
  }

  Status lower_backward(size_t n, LoweringContext& layer) {
    const Node& node = graph_.nodes()[n];
    for (int top : node.tops) layer.top_diffs.push_back(as_taken(node, diffs_[size_t(top)]));
    const auto arrives = [](TensorId diff) { return diff != kNoTensor; };
    if (std::ranges::none_of(layer.top_diffs, arrives)) return {};
    const std::vector<int> params = params_of(n);
    for (size_t i = 0; i < params.size(); ++i) {
      Gradient& gradient = params_[size_t(params[i])].gradient;
      if (std::ranges::count(params, params[i]) > 1) clear_gradient(layer, gradient);
      layer.param_diffs[i] = gradient;
      gradient.add = true;
    }
    CFT_TRY(lower_node_backward(node, layer));
    for (size_t i = 0; i < node.bottoms.size(); ++i) {
      diffs_[size_t(node.bottoms[i])] = layer.bottom_diffs[i];
    }
    return {};
  }

  /// Before a layer that shares a parameter with itself: which of its steps comes first is its own
  /// affair, so all of them add.
  void clear_gradient(LoweringContext& layer, Gradient& gradient) {
    if (gradient.tensor == kNoTensor || gradient.add) return;
    serial_step(program_, layer.step("clear gradient"), {}, {gradient.tensor},
                [count = program_.shape(gradient.tensor).count()](const auto&, const auto& out,
                                                                  const RunContext& run) {
                  if (!run.accumulate) std::fill_n(out[0], count, 0.F);
                });
    gradient.add = true;
  }

  void feed_gradients() {
    for (size_t k = 0; k < kept_.size(); ++k) {
      LoweredNet::Blob& output = net_.outputs[k];
      TensorId& diff = diffs_[size_t(kept_[k])];
      diff = program_.external(output.name + " diff", output.shape);
      output.diff = external(diff);
    }
  }

  /// The gradient of a loss: its weight times this batch's share of the rows.
  void seed_gradient(const Node& node, size_t top) {
    const size_t blob = size_t(node.tops[top]);
    const float weight = node.loss_weights[top];
    const int64_t count = shapes_[blob].count();
    diffs_[blob] = program_.tensor(node.param.top(int(top)) + " diff", shapes_[blob]);
    Step step;
    step.name = node.param.name() + " seed";
    step.kernel = "constant";
    step.writes = {program_.write(diffs_[blob], Layout::kRowMajor)};
    step.make = [=, write = step.writes[0]](const Binder& at) {
      float* to = at(write);
      const RunContext* run = at.run();
      return Kernel{1, [=](int) { std::fill_n(to, count, weight * run->loss_scale); }};
    };
    program_.step(std::move(step));
  }

  void keep_input_diffs() {
    for (const Node& node : graph_.nodes()) {
      for (size_t i = 0; i < node.tops.size() && node.type->source; ++i) {
        const size_t blob = size_t(node.tops[i]);
        if (diffs_[blob] == kNoTensor) continue;
        net_.input_diffs.push_back({node.param.top(int(i)), node.param.name(), shapes_[blob],
                                    program_.keep(diffs_[blob])});
      }
    }
  }

  const Graph& graph_;
  Device& device_;
  const PlanOptions& options_;
  LoweredNet& net_;
  Program& program_;
  std::vector<Shape> shapes_;
  std::vector<bool> needed_;   // per node
  std::vector<Fusion> fused_;  // per node
  Folds folds_;
  std::vector<std::optional<LoweringContext>> layers_;  // per node
  std::vector<int> kept_;                               // blob indices
  std::vector<TensorId> blobs_, diffs_;                 // per blob
  std::vector<ParamTensors> params_;  // per parameter; gradients as the next layer sees them
};

/// Removes duplicates, as in the sum of a blob with itself.
std::vector<BufferId> distinct(std::vector<BufferId> ids) {
  std::ranges::sort(ids);
  const auto rest = std::ranges::unique(ids);
  ids.erase(rest.begin(), rest.end());
  return ids;
}

int64_t bytes_of(const Program& program, const Step& step) {
  int64_t bytes = -step.unwritten;
  for (const auto& ids : {distinct(step.reads), distinct(step.writes)}) {
    for (BufferId id : ids) bytes += program.buffers()[size_t(id)].bytes;
  }
  return bytes;
}

/// The narrowest format of the buffers: some buffers are float32 sums whatever the others are.
Format narrowest(const Program& program, const std::vector<BufferId>& ids) {
  Format format = Format::kFloat32;
  for (BufferId id : ids) {
    const Format other = program.buffers()[size_t(id)].format;
    if (format_size(other) < format_size(format)) format = other;
  }
  return format;
}

std::string format_of(const Program& program, const Step& step) {
  const Format to = narrowest(program, step.writes);
  const Format from = step.reads.empty() ? to : narrowest(program, step.reads);
  const std::string name = format_name(from);
  return from == to ? name : name + ">" + format_name(to);
}

}  // namespace

std::vector<StepInfo> LoweredNet::steps() const {
  std::vector<StepInfo> list;
  std::string first;  // name of the first step of the pass
  for (const Step& step : program.steps()) {
    if (!step.joined) first = step.name;
    const std::string where = step.joined                    ? ", in the pass of " + first
                              : step.space == Space::kDevice ? ", queued"
                                                             : "";
    list.push_back({step.name, step.kernel + where, step.flops, list.size() >= first_backward,
                    bytes_of(program, step), format_of(program, step)});
  }
  return list;
}

Result<LoweredNet> lower(const Graph& graph, Device& device, const PlanOptions& options) {
  CFT_TRY(check_instruction_set());
  LoweredNet net;
  net.program = Program(&device);
  CFT_TRY(Lowering(graph, device, options, &net).run());
  return net;
}

Result<PlanOutline> PlanOutline::make(const Graph& graph, Device& device,
                                      const PlanOptions& options) {
  CFT_ASSIGN(LoweredNet net, lower(graph, device, options));
  std::vector<StepInfo> steps = net.steps();
  const int64_t bytes = place(net.program).bytes;
  return PlanOutline{std::move(net.inputs), std::move(net.outputs), std::move(steps), bytes,
                     options.updates};
}

}  // namespace cafetiere
