// SPDX-License-Identifier: Apache-2.0
#include "core/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "core/plan/final_gradients.h"
#include "core/plan/memory.h"

namespace cafetiere {

ParamPointers param_pointers(const Graph& graph, float* data, float* diff) {
  ParamPointers pointers;
  for (const Param& p : graph.params()) {
    pointers.data.push_back(data + p.offset);
    pointers.diff.push_back(diff ? diff + p.offset : nullptr);
  }
  return pointers;
}

/// Lays out the steps of all layers, then places the buffers and binds the kernels.
struct Plan::Builder {
  const Graph& graph;
  Device& device;
  const ParamPointers& pointers;
  const PlanOptions& options;
  Plan& plan;

  Builder(const Graph& graph, Device& device, const ParamPointers& pointers,
          const PlanOptions& options, Plan& plan)
      : graph(graph), device(device), pointers(pointers), options(options), plan(plan) {}

  Program program;
  std::vector<Shape> shapes;
  std::vector<bool> needed;  // by node
  enum class Fusion { kNone, kAppliesReLU, kApplied };
  std::vector<Fusion> fused;           // by node
  std::vector<int> kept;               // blobs
  std::vector<TensorId> blobs, diffs;  // by blob
  std::vector<TensorId> params;
  std::vector<Gradient> gradients;  // by parameter
  std::vector<LayerPlan> layers;    // by node

  Status build() {
    CFT_ASSIGN(shapes, graph.infer(options.batch));
    CFT_TRY(check_values());
    blobs.assign(shapes.size(), kNoTensor);
    diffs.assign(shapes.size(), kNoTensor);
    CFT_TRY(choose_nodes());
    choose_fusions();
    add_params();
    CFT_TRY(forward());
    plan.first_backward_ = program.steps().size();
    if (options.backward) CFT_TRY(backward());
    return bind();
  }

  /// No kernel has to think of blobs without values.
  Status check_values() const {
    for (size_t i = 0; i < shapes.size(); ++i) {
      if (shapes[i].count() > 0) continue;
      return invalid_argument(fmt::format("blob '{}' of net '{}' has no values: its shape is {}",
                                          graph.blob_names()[i], graph.name(), shapes[i].str()));
    }
    return {};
  }

  Status choose_nodes() {
    needed.assign(graph.nodes().size(), options.outputs.empty());
    if (options.outputs.empty()) {
      kept = graph.outputs();
      return {};
    }
    std::vector<bool> wanted(shapes.size(), false);
    for (const std::string& name : options.outputs) {
      const int blob = graph.find_blob(name);
      if (blob < 0) return not_found(fmt::format("the net has no blob '{}'", name));
      kept.push_back(blob);
      wanted[size_t(blob)] = true;
    }
    for (size_t n = graph.nodes().size(); n-- > 0;) {
      const Node& node = graph.nodes()[n];
      for (int top : node.tops) needed[n] = needed[n] || wanted[size_t(top)];
      for (int bottom : node.bottoms) wanted[size_t(bottom)] = wanted[size_t(bottom)] || needed[n];
    }
    return {};
  }

  void add_params() {
    for (size_t i = 0; i < graph.params().size(); ++i) {
      const Param& p = graph.params()[i];
      const std::string name = fmt::format("{}[{}]", p.layer, p.index);
      params.push_back(program.external(name, p.shape, pointers.data[i]));
      const bool wants = p.kind == ParamKind::kStatistic || p.lr_mult != 0 ||
                         options.feed_gradients || graph.force_backward();
      Gradient g;
      if (options.backward && wants && pointers.diff[i]) {
        g.tensor = program.external(name + " diff", p.shape, pointers.diff[i]);
      }
      gradients.push_back(g);
    }
  }

  Status forward() {
    for (size_t n = 0; n < graph.nodes().size(); ++n) {
      layers.push_back(layer_plan(graph.nodes()[n]));
      if (!needed[n]) continue;
      const Node& node = graph.nodes()[n];
      LayerPlan& layer = layers.back();
      if (node.type->source) {
        add_inputs(node, layer);
      } else if (fused[n] == Fusion::kApplied) {
        layer.tops[0] = layer.bottoms[0];
      } else {
        layer.fuse_relu = fused[n] == Fusion::kAppliesReLU;
        CFT_TRY(node.layer->forward(layer).with_context(node.where));
      }
      for (size_t i = 0; i < node.tops.size(); ++i) blobs[size_t(node.tops[i])] = layer.tops[i];
    }
    keep_outputs();
    return {};
  }

  LayerPlan layer_plan(const Node& node) {
    LayerPlan layer{.program = program,
                    .device = device,
                    .name = node.param.name(),
                    .train = node.param.phase() == caffe::TRAIN};
    for (int blob : node.bottoms) layer.bottoms.push_back(blobs[size_t(blob)]);
    layer.tops.assign(node.tops.size(), kNoTensor);
    for (int blob : node.tops) layer.top_shapes.push_back(shapes[size_t(blob)]);
    for (int p : node.params) {
      layer.params.push_back(params[size_t(p)]);
      layer.param_diffs.push_back(gradients[size_t(p)]);
      if (graph.params()[size_t(p)].kind == ParamKind::kLearned) continue;
      gradients[size_t(p)].add = true;
    }
    layer.bottom_diffs.assign(node.bottoms.size(), kNoTensor);
    layer.propagate_down = node.propagate_down;
    return layer;
  }

  /// Finds the convolutions and inner products that apply the ReLU behind them. A blob has one
  /// reader at most, so one pass sees every pair.
  void choose_fusions() {
    fused.assign(graph.nodes().size(), Fusion::kNone);
    std::vector<int> maker(shapes.size(), -1);  // by blob: the node that could apply a ReLU to it
    for (size_t n = 0; n < graph.nodes().size(); ++n) {
      const Node& node = graph.nodes()[n];
      const std::string_view type = node.type->name;
      if (!needed[n]) continue;
      if ((type == "Convolution" || type == "InnerProduct") && node.tops.size() == 1) {
        maker[size_t(node.tops[0])] = int(n);
      }
      if (type != "ReLU" || node.param.relu_param().negative_slope() != 0) continue;
      const int bottom = node.bottoms[0], by = maker[size_t(bottom)];
      if (by < 0 || std::ranges::find(kept, bottom) != kept.end()) continue;
      fused[size_t(by)] = Fusion::kAppliesReLU;
      fused[n] = Fusion::kApplied;
    }
  }

  float* hold(const Shape& shape) {
    plan.held_.emplace_back(size_t(std::max<int64_t>(shape.count(), 1)), 0.f);
    return plan.held_.back().data();
  }

  void add_inputs(const Node& node, LayerPlan& layer) {
    for (size_t i = 0; i < node.tops.size(); ++i) {
      Blob blob{node.param.top(int(i)), node.param.name(), layer.top_shapes[i]};
      blob.data = hold(blob.shape);
      layer.tops[i] = program.external(blob.name, blob.shape, blob.data);
      plan.inputs_.push_back(std::move(blob));
    }
  }

  void keep_outputs() {
    for (int blob : kept) {
      if (blobs[size_t(blob)] == kNoTensor) continue;
      output_buffers.push_back(program.keep(blobs[size_t(blob)]));
      plan.outputs_.push_back({graph.blob_names()[size_t(blob)], "", shapes[size_t(blob)]});
    }
    for (size_t n = 0; n < graph.nodes().size(); ++n) {
      const Node& node = graph.nodes()[n];
      for (size_t i = 0; i < node.tops.size() && needed[n]; ++i) {
        if (node.loss_weights[i] == 0) continue;
        const size_t blob = size_t(node.tops[i]);
        loss_buffers.push_back(program.keep(blobs[blob]));
        plan.losses_.push_back({nullptr, shapes[blob].count(), node.loss_weights[i]});
        for (size_t k = 0; k < kept.size(); ++k) {
          if (kept[k] == node.tops[i]) plan.outputs_[k].loss_weight = node.loss_weights[i];
        }
      }
    }
  }

  Status backward() {
    seed_gradients();
    for (size_t n = graph.nodes().size(); n-- > 0;) {
      const Node& node = graph.nodes()[n];
      if (!needed[n] || !node.needs_backward || node.type->source) continue;
      LayerPlan& layer = layers[n];
      bool arrives = false;
      for (int top : node.tops) {
        layer.top_diffs.push_back(diffs[size_t(top)]);
        arrives = arrives || diffs[size_t(top)] != kNoTensor;
      }
      if (!arrives) continue;
      for (size_t i = 0; i < node.params.size(); ++i) {
        layer.param_diffs[i] = gradients[size_t(node.params[i])];
        gradients[size_t(node.params[i])].add = true;
      }
      CFT_TRY(node.layer->backward(layer).with_context(node.where));
      for (size_t i = 0; i < node.bottoms.size(); ++i) {
        diffs[size_t(node.bottoms[i])] = layer.bottom_diffs[i];
      }
    }
    keep_input_diffs();
    return {};
  }

  /// A loss's own gradient: its weight times this batch's share of the rows.
  void seed_gradients() {
    if (options.feed_gradients) {
      for (size_t k = 0; k < kept.size(); ++k) {
        Blob& output = plan.outputs_[k];
        output.diff = hold(output.shape);
        diffs[size_t(kept[k])] = program.external(output.name + " diff", output.shape, output.diff);
      }
      return;
    }
    for (size_t n = 0; n < graph.nodes().size(); ++n) {
      const Node& node = graph.nodes()[n];
      for (size_t i = 0; i < node.tops.size() && needed[n]; ++i) {
        if (node.loss_weights[i] == 0) continue;
        const size_t blob = size_t(node.tops[i]);
        const float weight = node.loss_weights[i];
        const int64_t count = shapes[blob].count();
        diffs[blob] = program.tensor(node.param.top(int(i)) + " diff", shapes[blob]);
        Step step;
        step.name = node.param.name() + " seed";
        step.kernel = "constant";
        step.writes = {program.write(diffs[blob], Layout::kRowMajor)};
        step.make = [=, write = step.writes[0]](const Binder& at) {
          float* to = at(write);
          const RunContext* run = at.run();
          return Kernel{1, [=](int) { std::fill_n(to, count, weight * run->loss_scale); }};
        };
        program.step(std::move(step));
      }
    }
  }

  void keep_input_diffs() {
    for (size_t n = 0; n < graph.nodes().size(); ++n) {
      const Node& node = graph.nodes()[n];
      for (size_t i = 0; i < node.tops.size() && node.type->source; ++i) {
        const TensorId diff = diffs[size_t(node.tops[i])];
        if (diff == kNoTensor) continue;
        input_diff_buffers.push_back(program.keep(diff));
        plan.input_diffs_.push_back(
            {node.param.top(int(i)), node.param.name(), shapes[size_t(node.tops[i])]});
      }
    }
  }

  int64_t bytes_of(const Step& step) const {
    int64_t floats = 0;
    for (BufferId id : step.reads) floats += program.buffers()[size_t(id)].floats;
    for (BufferId id : step.writes) floats += program.buffers()[size_t(id)].floats;
    return floats * int64_t(sizeof(float));
  }

  Status take_arena(int64_t floats) {
    if (options.beside && options.beside->arena_floats_ >= floats) {
      plan.arena_ = options.beside->arena_;
      plan.arena_floats_ = options.beside->arena_floats_;
      plan.shares_arena_ = true;
      return {};
    }
    Result<Arena> arena = allocate_arena(floats);
    if (!arena.ok()) {
      return arena.status().with_context(
          fmt::format("the blobs of net '{}' (a smaller batch_size needs less)", graph.name()));
    }
    plan.arena_ = std::move(*arena);
    plan.arena_floats_ = floats;
    return {};
  }

  Status bind() {
    const MemoryPlan memory = plan_memory(program);
    CFT_TRY(take_arena(memory.floats));
    std::vector<float*> addresses;
    for (size_t i = 0; i < program.buffers().size(); ++i) {
      const Buffer& buffer = program.buffers()[i];
      const int64_t offset = memory.offsets[i];
      addresses.push_back(buffer.external ? buffer.external
                                          : plan.arena_.get() + std::max<int64_t>(offset, 0));
    }
    const Binder binder(addresses, &plan.context_);
    for (size_t i = 0; i < program.steps().size(); ++i) {
      const Step& step = program.steps()[i];
      plan.steps_.push_back(
          {step.make(binder),
           {step.name, step.kernel, step.flops, i >= plan.first_backward_, bytes_of(step)}});
    }
    plan.final_from_ = final_gradients(program, pointers.diff);
    const auto set = [&](std::vector<Blob>& list, const std::vector<BufferId>& ids) {
      for (size_t i = 0; i < ids.size(); ++i) list[i].data = addresses[size_t(ids[i])];
    };
    set(plan.outputs_, output_buffers);
    set(plan.input_diffs_, input_diff_buffers);
    for (size_t i = 0; i < loss_buffers.size(); ++i) {
      plan.losses_[i].data = addresses[size_t(loss_buffers[i])];
    }
    return {};
  }

  std::vector<BufferId> output_buffers, input_diff_buffers, loss_buffers;
};

Result<std::unique_ptr<Plan>> Plan::compile(const Graph& graph, Device& device,
                                            const ParamPointers& params,
                                            const PlanOptions& options) {
  std::unique_ptr<Plan> plan(new Plan);
  Builder builder(graph, device, params, options, *plan);
  CFT_TRY(builder.build());
  return plan;
}

void Plan::begin(const RunContext& context) {
  context_ = context;
  context_.error = &error_;
}

Status Plan::run(ThreadPool& pool, const RunContext& context) {
  begin(context);
  for (const Bound& step : steps_) pool.run(step.kernel.blocks, step.kernel.run);
  return error_.take();
}

Status Plan::run(ThreadPool& pool, const RunContext& context, const FinalFrom& final_from) {
  begin(context);
  for (size_t i = 0; i < steps_.size(); ++i) {
    pool.run(steps_[i].kernel.blocks, steps_[i].kernel.run);
    if (final_from_[i]) final_from(final_from_[i]);
  }
  return error_.take();
}

Status Plan::run_forward(ThreadPool& pool, const RunContext& context) {
  begin(context);
  for (size_t i = 0; i < first_backward_; ++i) {
    pool.run(steps_[i].kernel.blocks, steps_[i].kernel.run);
  }
  return error_.take();
}

float Plan::loss() const {
  float sum = 0;
  for (const Loss& loss : losses_) {
    for (int64_t i = 0; i < loss.count; ++i) sum += loss.weight * loss.data[i];
  }
  return sum;
}

std::vector<Plan::StepInfo> Plan::describe() const {
  std::vector<StepInfo> list;
  for (const Bound& step : steps_) list.push_back(step.info);
  return list;
}

Status Plan::time(ThreadPool& pool, const RunContext& context, std::vector<double>& seconds) {
  begin(context);
  seconds.resize(steps_.size(), 0);
  for (size_t i = 0; i < steps_.size(); ++i) {
    const auto start = std::chrono::steady_clock::now();
    pool.run(steps_[i].kernel.blocks, steps_[i].kernel.run);
    seconds[i] += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return error_.take();
}

}  // namespace cafetiere
