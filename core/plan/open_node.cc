// SPDX-License-Identifier: Apache-2.0
#include "core/plan/open_node.h"

#include <cstdlib>
#include <new>

#include "core/plan/node_program.h"

namespace cafetiere {

std::shared_ptr<float> zeroed_memory(int64_t floats) {
  constexpr size_t kAlign = 256;  // bytes: four cache lines, so that neighbours never share one
  void* const block = std::calloc(size_t(floats) * sizeof(float) + kAlign, 1);
  if (!block) throw std::bad_alloc();
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(block) + kAlign - 1) / kAlign * kAlign;
  return {reinterpret_cast<float*>(begin), [block](float*) { std::free(block); }};
}

/// Gives every buffer its own memory and makes the kernels.
class OpenNode::Compiler : public NodeProgram {
 public:
  using NodeProgram::NodeProgram;

  void bind(OpenNode* to) const {
    const MemoryPlan memory = places();
    to->memory_ = zeroed_memory(memory.floats);
    std::vector<float*> addresses;
    for (size_t i = 0; i < memory.offsets.size(); ++i) {
      float* const external = program().buffers()[i].external;
      addresses.push_back(external ? external : to->memory_.get() + memory.offsets[i]);
    }
    const Binder binder(addresses, to->context_.get());
    for (size_t i = 0; i < program().steps().size(); ++i) {
      auto& list = i < forward_steps() ? to->forward_ : to->backward_;
      list.push_back(program().steps()[i].make(binder));
    }
  }
};

Status OpenNode::prepare(const Node& node, const Graph& graph, Device& device,
                         const NodeBlobs& blobs) {
  if (compiled_ && blobs == blobs_) return {};
  compiled_ = false;
  forward_.clear();
  backward_.clear();
  blobs_ = blobs;
  Compiler compiler(node, graph, device, blobs_);
  CFT_TRY(compiler.forward().with_context(node.where));
  backward_status_ = compiler.backward().with_context(node.where);
  compiler.bind(this);
  compiled_ = true;
  return {};
}

Status OpenNode::forward(const Node& node, const Graph& graph, Device& device, ThreadPool& pool,
                         const NodeBlobs& blobs, const RunContext& context) {
  if (const auto* open = dynamic_cast<const OpenLayer*>(node.layer.get())) {
    return open->run_forward(blobs.bottoms, blobs.tops, blobs.params).with_context(node.where);
  }
  CFT_TRY(prepare(node, graph, device, blobs));
  *context_ = context;
  context_->error = error_.get();
  for (const Kernel& kernel : forward_) pool.run(kernel.blocks, kernel.run);
  return error_->take().with_context(node.where);
}

Status OpenNode::backward(const Node& node, const Graph& graph, Device& device, ThreadPool& pool,
                          const NodeBlobs& blobs) {
  if (const auto* open = dynamic_cast<const OpenLayer*>(node.layer.get())) {
    return open->run_backward(blobs.tops, node.propagate_down, blobs.bottoms, blobs.params)
        .with_context(node.where);
  }
  CFT_TRY(prepare(node, graph, device, blobs));
  CFT_TRY(backward_status_);
  for (const Kernel& kernel : backward_) pool.run(kernel.blocks, kernel.run);
  return error_->take().with_context(node.where);
}

}  // namespace cafetiere
