// SPDX-License-Identifier: Apache-2.0
#include "core/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

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

Result<std::unique_ptr<Plan>> Plan::compile(const Graph& graph, Device& device,
                                            const ParamPointers& params,
                                            const PlanOptions& options) {
  CFT_ASSIGN(LoweredNet net, lower(graph, device, options));
  const MemoryPlan memory = place(net.program);
  std::unique_ptr<Plan> plan(new Plan);
  CFT_TRY(plan->bind(std::move(net), device, memory, params, options)
              .with_context(fmt::format("net '{}'", graph.name())));
  return plan;
}

Status Plan::bind(LoweredNet net, Device& device, const MemoryPlan& memory,
                  const ParamPointers& params, const PlanOptions& options) {
  queue_ = device.queue();
  CFT_TRY(take_arenas(device, memory, options));
  const std::vector<void*> addresses = place_buffers(net, memory, params);
  const Binder binder(addresses, &context_);
  const auto at = [&](BufferId id) { return id == kNoBuffer ? nullptr : binder(id); };
  bind_steps(net, binder);
  hoisted_ = net.hoisted;
  first_backward_ = net.first_backward;
  final_from_ = final_gradients(net.program, addresses, params.diff);
  const auto blobs = [&](std::vector<LoweredNet::Blob>& from, std::vector<Blob>* to) {
    for (LoweredNet::Blob& b : from) {
      to->push_back({std::move(b.name), std::move(b.layer), std::move(b.shape), at(b.data),
                     at(b.diff), b.loss_weight});
    }
  };
  blobs(net.inputs, &inputs_);
  blobs(net.outputs, &outputs_);
  blobs(net.input_diffs, &input_diffs_);
  for (const LoweredNet::Loss& loss : net.losses) {
    losses_.push_back({at(loss.data), loss.count, loss.weight});
  }
  return {};
}

/// A host step waits for the queue if the queue has used host memory since the last wait. Only
/// copies do.
void Plan::bind_steps(const LoweredNet& net, const Binder& binder) {
  const auto on_host = [&](BufferId id) {
    return net.program.buffers()[size_t(id)].space == Space::kHost;
  };
  const std::vector<Step>& steps = net.program.steps();
  std::vector<StepInfo> infos = net.steps();
  bool copies = false;
  for (size_t i = 0; i < infos.size(); ++i) {
    const Step& step = steps[i];
    const bool queued = step.space == Space::kDevice;
    Kernel kernel{.blocks = 0, .run = nullptr};  // empty if joined to the step before
    if (!step.joined) {
      std::vector<const Step*> pass{&step};
      while (i + pass.size() < steps.size() && steps[i + pass.size()].joined) {
        pass.push_back(&steps[i + pass.size()]);
      }
      const RowPass rows(pass, binder);
      kernel = rows.kernel();
      if (pass.size() > 1) passes_.emplace(i, rows);
    }
    steps_.push_back({std::move(kernel), std::move(infos[i]), queued, !queued && copies});
    copies = queued && (copies || std::ranges::any_of(step.reads, on_host) ||
                        std::ranges::any_of(step.writes, on_host));
  }
}

/// All plans that share the values have the same hoisted steps, so they place the values alike.
Status Plan::take_fixed(Device& device, int64_t bytes, const PlanOptions& options) {
  FixedValues& fixed = *options.fixed;
  const std::lock_guard lock(fixed.mutex);
  if (!fixed.memory) {
    CFT_ASSIGN(fixed.memory, device.allocate(Space::kHost, bytes));
    fixed.bytes = bytes;
  }
  if (fixed.bytes != bytes) return internal_error("plans of different nets share fixed values");
  fixed_arena_ = fixed.memory;
  fixed_ = options.fixed;
  fixed_ready_ = false;
  return {};
}

Status Plan::take_arenas(Device& device, const MemoryPlan& memory, const PlanOptions& options) {
  const Plan* const beside = options.beside;
  if (memory.fixed_bytes > 0) CFT_TRY(take_fixed(device, memory.fixed_bytes, options));
  if (memory.device_bytes > 0) {
    CFT_ASSIGN(device_arena_, device.allocate(Space::kDevice, memory.device_bytes));
  }
  if (beside && beside->arena_bytes_ >= memory.bytes) {
    arena_ = beside->arena_;
    arena_bytes_ = beside->arena_bytes_;
    shares_arena_ = true;
    return {};
  }
  Result<Memory> arena = device.allocate(Space::kHost, memory.bytes);
  if (!arena.ok()) {
    return arena.status().with_context("the blobs (a smaller batch_size needs less)");
  }
  arena_ = std::move(*arena);
  arena_bytes_ = memory.bytes;
  return {};
}

/// The address of each buffer; those of unused buffers are null.
std::vector<void*> Plan::place_buffers(const LoweredNet& net, const MemoryPlan& memory,
                                       const ParamPointers& params) {
  std::vector<void*> addresses;
  for (size_t i = 0; i < memory.offsets.size(); ++i) {
    const Buffer& buffer = net.program.buffers()[i];
    const Memory& of_space = buffer.space == Space::kHost ? arena_ : device_arena_;
    std::byte* const arena = (buffer.fixed ? fixed_arena_ : of_space).get();
    addresses.push_back(memory.offsets[i] < 0 ? nullptr : arena + memory.offsets[i]);
  }
  const auto put = [&](BufferId id, float* address) {
    if (id != kNoBuffer) addresses[size_t(id)] = address;
  };
  for (size_t i = 0; i < net.params.size(); ++i) {
    put(net.params[i], params.data[i]);
    put(net.gradients[i], params.diff[i]);
  }
  for (const LoweredNet::Blob& input : net.inputs) put(input.data, hold(input.shape));
  for (const LoweredNet::Blob& output : net.outputs) {
    if (output.diff != kNoBuffer) put(output.diff, hold(output.shape));
  }
  return addresses;
}

float* Plan::hold(const Shape& shape) {
  input_values_.emplace_back(size_t(shape.count()), 0.f);
  return input_values_.back().data();
}

void Plan::begin(ThreadPool& pool, const RunContext& context) {
  wait();  // a run that threw an exception may have left kernels in the queue
  context_ = context;
  context_.error = &error_;
  if (!fixed_ready_) compute_fixed(pool);
}

void Plan::compute_fixed(ThreadPool& pool) {
  const std::lock_guard lock(fixed_->mutex);
  for (size_t i = 0; i < hoisted_ && !fixed_->ready; ++i) start(pool, steps_[i]);
  fixed_->ready = fixed_ready_ = true;
}

void Plan::start(ThreadPool& pool, const Bound& step) {
  if (step.queued) return queue_->submit(step.kernel);
  if (step.waits) queue_->wait();
  pool.run(step.kernel.blocks, step.kernel.run);
}

Status Plan::finish() {
  wait();
  return error_.take();
}

Status Plan::run(ThreadPool& pool, const RunContext& context) {
  begin(pool, context);
  for (size_t i = hoisted_; i < steps_.size(); ++i) start(pool, steps_[i]);
  return finish();
}

Status Plan::run(ThreadPool& pool, const RunContext& context, const FinalFrom& final_from) {
  begin(pool, context);
  for (size_t i = hoisted_; i < steps_.size(); ++i) {
    start(pool, steps_[i]);
    if (!final_from_[i]) continue;
    wait();
    final_from(final_from_[i]);
  }
  return finish();
}

Status Plan::run_forward(ThreadPool& pool, const RunContext& context) {
  begin(pool, context);
  for (size_t i = hoisted_; i < first_backward_; ++i) start(pool, steps_[i]);
  return finish();
}

float Plan::loss() const {
  float sum = 0;
  for (const Loss& loss : losses_) {
    for (int64_t i = 0; i < loss.count; ++i) sum += loss.weight * loss.data[i];
  }
  return sum;
}

std::vector<StepInfo> Plan::describe() const {
  std::vector<StepInfo> list;
  for (const Bound& step : steps_) list.push_back(step.info);
  return list;
}

Status Plan::time(ThreadPool& pool, const RunContext& context, std::vector<double>& seconds) {
  begin(pool, context);
  seconds.resize(steps_.size(), 0);
  for (size_t i = hoisted_; i < steps_.size(); ++i) {
    const auto pass = passes_.find(i);
    const size_t count = pass == passes_.end() ? 1 : pass->second.size();
    std::vector<int64_t> shares(count, count == 1);
    const auto begun = std::chrono::steady_clock::now();
    if (count > 1) {
      const Kernel kernel = pass->second.timed_kernel(&shares);
      pool.run(kernel.blocks, kernel.run);
    } else {
      start(pool, steps_[i]);
    }
    wait();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begun;
    const int64_t all = std::accumulate(shares.begin(), shares.end(), int64_t(0));
    for (size_t k = 0; k < count; ++k) {
      seconds[i + k] += spent.count() * double(shares[k]) / double(all);
    }
    i += count - 1;
  }
  return finish();
}

}  // namespace cafetiere
