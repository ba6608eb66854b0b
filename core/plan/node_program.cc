// SPDX-License-Identifier: Apache-2.0
#include "core/plan/node_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/device/map.h"
#include "core/device/reorder.h"

namespace cafetiere {
namespace {

/// A step that copies row-major `count` floats.
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

using Names = google::protobuf::RepeatedPtrField<std::string>;

bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// No kernel has to think of blobs without values.
Status check_values(const Names& names, const std::vector<BlobView>& blobs) {
  for (size_t i = 0; i < blobs.size(); ++i) {
    if (blobs[i].shape.count() > 0) continue;
    return invalid_argument(fmt::format("blob '{}' has no values: its shape is {}", names[int(i)],
                                        blobs[i].shape.str()));
  }
  return {};
}

}  // namespace

NodeProgram::NodeProgram(const Node& node, const Graph& graph, Device& device,
                         const NodeBlobs& blobs)
    : node_(node),
      graph_(graph),
      blobs_(blobs),
      layer_{.program = program_, .device = device, .name = node.param.name()} {}

Status NodeProgram::forward() {
  layer_.train = node_.param.phase() == caffe::TRAIN;
  layer_.propagate_down = node_.propagate_down;
  CFT_TRY(check_values(node_.param.bottom(), blobs_.bottoms));
  CFT_TRY(check_values(node_.param.top(), blobs_.tops));
  for (size_t i = 0; i < blobs_.bottoms.size(); ++i) {
    const BlobView& bottom = blobs_.bottoms[i];
    const bool overwritten = contains(node_.param.top(), node_.param.bottom(int(i)));
    layer_.bottoms.push_back(input("bottom", bottom.shape, bottom.data, overwritten));
  }
  layer_.bottom_diffs.assign(blobs_.bottoms.size(), kNoTensor);
  layer_.tops.assign(blobs_.tops.size(), kNoTensor);
  for (const BlobView& top : blobs_.tops) layer_.top_shapes.push_back(top.shape);
  for (size_t i = 0; i < blobs_.params.size(); ++i) add_param(i);
  CFT_TRY(node_.layer->forward(layer_));
  for (size_t i = 0; i < blobs_.tops.size(); ++i) {
    output(layer_.tops[i], blobs_.tops[i].shape, blobs_.tops[i].data);
  }
  forward_steps_ = program_.steps().size();
  return {};
}

Status NodeProgram::backward() {
  if (!node_.needs_backward) return {};
  for (size_t i = 0; i < blobs_.tops.size(); ++i) {
    const BlobView& top = blobs_.tops[i];
    // Read anew: the caller may have changed it since forward. A later layer in place has for sure.
    if (!overwritten_later(node_.tops[i])) {
      layer_.tops[i] = program_.external("top", top.shape, top.data);
    }
    const bool overwritten = contains(node_.param.bottom(), node_.param.top(int(i)));
    layer_.top_diffs.push_back(input("top diff", top.shape, top.diff, overwritten));
  }
  CFT_TRY(node_.layer->backward(layer_));
  for (size_t i = 0; i < blobs_.bottoms.size(); ++i) {
    if (layer_.bottom_diffs[i] == kNoTensor) continue;
    output(layer_.bottom_diffs[i], blobs_.bottoms[i].shape, blobs_.bottoms[i].diff);
  }
  return {};
}

MemoryPlan NodeProgram::places() const {
  MemoryPlan places;
  for (const Buffer& buffer : program_.buffers()) {
    places.offsets.push_back(buffer.external ? -1 : places.floats);
    if (!buffer.external)
      places.floats += (buffer.floats + kBufferAlign - 1) / kBufferAlign * kBufferAlign;
  }
  return places;
}

bool NodeProgram::overwritten_later(int blob) const {
  const std::string& name = graph_.blob_names()[size_t(blob)];
  return std::any_of(graph_.nodes().begin(), graph_.nodes().end(), [&](const Node& node) {
    const auto& bottoms = node.bottoms;
    return std::find(bottoms.begin(), bottoms.end(), blob) != bottoms.end() &&
           contains(node.param.top(), name);
  });
}

TensorId NodeProgram::input(const char* what, const Shape& shape, float* memory, bool overwritten) {
  const TensorId blob = program_.external(layer_.name + " " + what, shape, memory);
  if (!overwritten) return blob;
  const TensorId copy = layer_.new_tensor(what, shape);
  program_.step(copy_step(layer_.name, shape.count(), program_.read(blob, Layout::kRowMajor),
                          program_.write(copy, Layout::kRowMajor)));
  return copy;
}

void NodeProgram::output(TensorId made, const Shape& shape, float* memory) {
  const Layout layout = program_.layout(made);
  const BufferId from = program_.read(made, layout);
  if (program_.buffers()[size_t(from)].external == memory) return;
  const TensorId blob = program_.external(layer_.name, shape, memory);
  const BufferId to = program_.write(blob, Layout::kRowMajor);
  program_.step(same_order(shape, layout, Layout::kRowMajor)
                    ? copy_step(layer_.name, shape.count(), from, to)
                    : reorder_step(layer_.name, shape, layout, from, Layout::kRowMajor, to));
}

void NodeProgram::add_param(size_t i) {
  const Param& p = graph_.params()[size_t(node_.params[i])];
  const BlobView& view = blobs_.params[i];
  layer_.params.push_back(program_.external(p.layer, view.shape, view.data));
  Gradient gradient;
  if (p.kind == ParamKind::kStatistic) {
    gradient.tensor = program_.external(p.layer, view.shape, view.data);
  } else if (p.lr_mult != 0 || graph_.force_backward()) {
    gradient.tensor = program_.external(p.layer + " diff", view.shape, view.diff);
  }
  layer_.param_diffs.push_back(gradient);
}

}  // namespace cafetiere
