// SPDX-License-Identifier: Apache-2.0
#include "core/plan/node_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/device/map.h"
#include "core/device/reorder.h"

namespace cafetiere {
namespace {

/// A step that copies `count` row-major floats.
Step copy_step(const std::string& name, int64_t count, BufferId from, BufferId to) {
  Step step;
  step.name = name + " copy";
  step.kernel = "copy";
  step.reads = {from};
  step.writes = {to};
  step.make = [=](const Binder& at) {
    const float* in = at(from);
    float* out = at(to);
    return Kernel{map_blocks(count), [=](int block) {
                    const int64_t begin = block * kMapBlock;
                    const int64_t end = std::min(count, begin + kMapBlock);
                    std::memcpy(out + begin, in + begin, size_t(end - begin) * sizeof(float));
                  }};
  };
  return step;
}

Step clear_step(const std::string& name, int64_t count, BufferId to) {
  Step step;
  step.name = name + " clear";
  step.kernel = "clear";
  step.writes = {to};
  step.make = [=](const Binder& at) {
    float* out = at(to);
    return Kernel{1, [=](int) { std::fill_n(out, count, 0.f); }};
  };
  return step;
}

using Names = google::protobuf::RepeatedPtrField<std::string>;

bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Status NodeProgram::forward() {
  if (lacks_rows()) {
    for (const BlobView& top : blobs_.tops) clear("top", top.shape, top.data);
    forward_steps_ = program_.steps().size();
    return {};
  }
  NodeTensors tensors;
  for (size_t i = 0; i < blobs_.bottoms.size(); ++i) {
    const bool overwritten = contains(node_.param.top(), node_.param.bottom(int(i)));
    tensors.bottoms.push_back(
        input("bottom", blobs_.bottoms[i], blobs_.bottoms[i].data, overwritten));
  }
  for (const BlobView& top : blobs_.tops) tensors.top_shapes.push_back(top.shape);
  for (size_t i = 0; i < blobs_.params.size(); ++i) tensors.params.push_back(param(i));
  layer_.emplace(layer_plan(node_, program_, device_, tensors));
  CFT_TRY(lower_node(node_, *layer_));
  for (size_t i = 0; i < blobs_.tops.size(); ++i) {
    output(layer_->tops[i], blobs_.tops[i].shape, blobs_.tops[i].data);
  }
  forward_steps_ = program_.steps().size();
  return {};
}

Status NodeProgram::backward() {
  if (!node_.needs_backward) return {};
  if (lacks_rows()) {
    for (size_t i = 0; i < blobs_.bottoms.size(); ++i) {
      const BlobView& bottom = blobs_.bottoms[i];
      if (node_.propagate_down[i]) clear("bottom diff", bottom.shape, bottom.diff);
    }
    return {};
  }
  for (size_t i = 0; i < blobs_.tops.size(); ++i) {
    const BlobView& top = blobs_.tops[i];
    // Read the top again: the caller may have changed it since forward. If a later in-place layer
    // overwrites it, forward's tensor is used.
    if (!overwritten_later(node_.tops[i])) layer_->tops[i] = external("top", top.shape, top.data);
    const bool overwritten = contains(node_.param.bottom(), node_.param.top(int(i)));
    layer_->top_diffs.push_back(input("top diff", top, top.diff, overwritten));
  }
  CFT_TRY(lower_node_backward(node_, *layer_));
  for (size_t i = 0; i < blobs_.bottoms.size(); ++i) {
    if (layer_->bottom_diffs[i] == kNoTensor) continue;
    output(layer_->bottom_diffs[i], blobs_.bottoms[i].shape, blobs_.bottoms[i].diff);
  }
  return {};
}

MemoryPlan NodeProgram::places() const {
  MemoryPlan places;
  for (const Buffer& buffer : program_.buffers()) {
    places.offsets.push_back(buffer.external ? -1 : places.bytes);
    if (!buffer.external) places.bytes += placed_size(buffer.bytes);
  }
  return places;
}

std::vector<void*> NodeProgram::addresses(std::byte* memory) const {
  std::vector<void*> addresses;
  for (int64_t offset : places().offsets) {
    addresses.push_back(offset < 0 ? nullptr : memory + offset);
  }
  for (const auto& [buffer, address] : externals_) addresses[size_t(buffer)] = address;
  return addresses;
}

bool NodeProgram::overwritten_later(int blob) const {
  const std::string& name = graph_.blob_names()[size_t(blob)];
  return std::any_of(graph_.nodes().begin(), graph_.nodes().end(), [&](const Node& node) {
    const auto& bottoms = node.bottoms;
    return std::find(bottoms.begin(), bottoms.end(), blob) != bottoms.end() &&
           contains(node.param.top(), name);
  });
}

bool NodeProgram::lacks_rows() const {
  return std::ranges::any_of(blobs_.bottoms,
                             [](const BlobView& bottom) { return bottom.shape.count() == 0; });
}

void NodeProgram::clear(const char* what, const Shape& shape, float* memory) {
  if (shape.count() == 0) return;
  const BufferId to = program_.write(external(what, shape, memory), Layout::kRowMajor);
  program_.step(clear_step(node_.param.name(), shape.count(), to));
}

TensorId NodeProgram::external(const char* what, const Shape& shape, float* memory) {
  const TensorId id = program_.external(node_.param.name() + " " + what, shape);
  put(id, memory);
  return id;
}

void NodeProgram::put(TensorId id, float* memory) {
  externals_[program_.read(id, Layout::kRowMajor)] = memory;
}

TensorId NodeProgram::input(const char* what, const BlobView& blob, float* memory,
                            bool overwritten) {
  const TensorId id = external(what, blob.shape, memory);
  if (!overwritten) return id;
  const TensorId copy = program_.tensor(node_.param.name() + " " + what, blob.shape);
  program_.step(copy_step(node_.param.name(), blob.shape.count(),
                          program_.read(id, Layout::kRowMajor),
                          program_.write(copy, Layout::kRowMajor)));
  return copy;
}

void NodeProgram::output(TensorId made, const Shape& shape, float* memory) {
  const Layout layout = program_.layout(made);
  const BufferId from = program_.read(made, layout);
  const auto there = externals_.find(from);
  if (there != externals_.end() && there->second == memory) return;
  const BufferId to = program_.write(external("output", shape, memory), Layout::kRowMajor);
  const std::string& name = node_.param.name();
  program_.step(same_order(shape, layout, Layout::kRowMajor)
                    ? copy_step(name, shape.count(), from, to)
                    : reorder_step(name, shape, layout, from, Layout::kRowMajor, to));
}

ParamTensors NodeProgram::param(size_t i) {
  const Param& p = graph_.params()[size_t(node_.params[i])];
  const BlobView& view = blobs_.params[i];
  const ParamTensors tensors = add_param(program_, p, wants_gradient(p, graph_.force_backward()));
  put(tensors.data, view.data);
  if (tensors.gradient.tensor != kNoTensor) {
    put(tensors.gradient.tensor, p.kind == ParamKind::kStatistic ? view.data : view.diff);
  }
  return tensors;
}

}  // namespace cafetiere
