// SPDX-License-Identifier: Apache-2.0
#include "core/plan/open_memory.h"

#include <map>

#include "core/plan/node_program.h"

namespace cafetiere {
namespace {

/// Arrays by where they begin: those that several layers see count once.
using Arrays = std::map<const float*, int64_t>;

NodeBlobs blobs_of(const Net& net, const Node& node) {
  NodeBlobs blobs;
  const auto view = [&](int blob) { return net.blobs()[size_t(net.home(blob))].view(); };
  for (int bottom : node.bottoms) blobs.bottoms.push_back(view(bottom));
  for (int top : node.tops) blobs.tops.push_back(view(top));
  for (int p : node.params) blobs.params.push_back(net.params()[size_t(p)].view());
  return blobs;
}

void add_written(const Node& node, const NodeBlobs& blobs, Arrays* written) {
  for (const BlobView& top : blobs.tops) {
    (*written)[top.data] = top.shape.count();
    if (node.needs_backward) (*written)[top.diff] = top.shape.count();
  }
  for (size_t i = 0; i < blobs.bottoms.size(); ++i) {
    if (!node.needs_backward || !node.propagate_down[i]) continue;
    (*written)[blobs.bottoms[i].diff] = blobs.bottoms[i].shape.count();
  }
}

/// Floats of the buffers of one layer.
Result<int64_t> floats_of(const Net& net, const Node& node, const NodeBlobs& blobs,
                          Device& device) {
  if (node.type->source || dynamic_cast<const OpenLayer*>(node.layer.get())) return 0;
  NodeProgram program(node, net.graph(), device, blobs);
  CFT_TRY(program.forward().with_context(node.where));
  CFT_TRY(program.backward().with_context(node.where));
  return program.places().floats;
}

}  // namespace

Result<int64_t> open_net_bytes(const Net& net) {
  const auto device = make_cpu_device();
  int64_t floats = 2 * net.graph().arena_size();
  Arrays written;
  for (const Node& node : net.graph().nodes()) {
    const NodeBlobs blobs = blobs_of(net, node);
    add_written(node, blobs, &written);
    CFT_ASSIGN(const int64_t own, floats_of(net, node, blobs, *device));
    floats += own;
  }
  for (const auto& [begin, count] : written) floats += count;
  return floats * int64_t(sizeof(float));
}

}  // namespace cafetiere
