// SPDX-License-Identifier: Apache-2.0
#include "core/plan/eager_node.h"

#include <cstdlib>
#include <new>

#include "core/plan/node_program.h"

namespace cafetiere {

Memory zeroed_bytes(int64_t bytes) {
  constexpr size_t kAlign = kBufferAlign;
  void* const block = std::calloc(size_t(bytes) + kAlign, 1);
  if (!block) throw std::bad_alloc();
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(block) + kAlign - 1) / kAlign * kAlign;
  return {reinterpret_cast<std::byte*>(begin), [block](std::byte*) { std::free(block); }};
}

std::shared_ptr<float> zeroed_memory(int64_t floats) {
  return std::reinterpret_pointer_cast<float>(zeroed_bytes(floats * int64_t(sizeof(float))));
}

void EagerNode::bind(const NodeProgram& program) {
  memory_ = zeroed_bytes(program.places().bytes);
  const std::vector<void*> addresses = program.addresses(memory_.get());
  const Binder binder(addresses, context_.get());
  const std::vector<Step>& steps = program.program().steps();
  for (size_t i = 0; i < steps.size(); ++i) {
    (i < program.forward_steps() ? forward_ : backward_).push_back(steps[i].make(binder));
  }
}

Status EagerNode::prepare(const Node& node, const Graph& graph, Device& device,
                          const NodeBlobs& blobs) {
  if (compiled_ && blobs == blobs_) return {};
  compiled_ = false;
  forward_.clear();
  backward_.clear();
  blobs_ = blobs;
  NodeProgram program(node, graph, device, blobs_);
  CFT_TRY(program.forward());
  backward_status_ = program.backward();
  bind(program);
  compiled_ = true;
  return {};
}

Status EagerNode::forward(const Node& node, const Graph& graph, Device& device, ThreadPool& pool,
                          const NodeBlobs& blobs, const RunContext& context) {
  if (const auto* open = dynamic_cast<const ExternalLayer*>(node.layer.get())) {
    return open->run_forward(blobs.bottoms, blobs.tops, blobs.params).with_context(node.where);
  }
  CFT_TRY(prepare(node, graph, device, blobs));
  *context_ = context;
  context_->error = error_.get();
  for (const Kernel& kernel : forward_) pool.run(kernel.blocks, kernel.run);
  return error_->take();  // it names the layer
}

Status EagerNode::backward(const Node& node, const Graph& graph, Device& device, ThreadPool& pool,
                           const NodeBlobs& blobs) {
  if (const auto* open = dynamic_cast<const ExternalLayer*>(node.layer.get())) {
    return open->run_backward(blobs.tops, node.propagate_down, blobs.bottoms, blobs.params)
        .with_context(node.where);
  }
  CFT_TRY(prepare(node, graph, device, blobs));
  CFT_TRY(backward_status_);
  for (const Kernel& kernel : backward_) pool.run(kernel.blocks, kernel.run);
  return error_->take();  // it names the layer
}

}  // namespace cafetiere
