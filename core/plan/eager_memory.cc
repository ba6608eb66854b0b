// SPDX-License-Identifier: Apache-2.0
#include "core/plan/eager_memory.h"

#include <map>
#include <numeric>

#include "core/plan/net.h"
#include "core/plan/node_program.h"

namespace cafetiere {
namespace {

/// The arrays that passes write, with their sizes in floats; an array shared by layers counts once.
class Written {
 public:
  Written(const Graph& graph, const std::vector<Shape>& shapes)
      : blob_indices_(blob_homes(graph)), shapes_(shapes.size()), data_of_(shapes.size()) {
    std::iota(data_of_.begin(), data_of_.end(), 0);
    for (size_t i = 0; i < shapes.size(); ++i) shapes_[blob_index(int(i))] = shapes[i];
  }

  void add(const Node& node) {
    for (int top : node.tops) {
      // A split's tops share its bottom's memory.
      if (node.type->identity) data_of_[blob_index(top)] = data_of_[blob_index(node.bottoms[0])];
      data_[data_of_[blob_index(top)]] = shape(top).count();
      if (node.needs_backward) diffs_[blob_index(top)] = shape(top).count();
    }
    for (size_t i = 0; i < node.bottoms.size(); ++i) {
      if (!node.needs_backward || !node.propagate_down[i]) continue;
      diffs_[blob_index(node.bottoms[i])] = shape(node.bottoms[i]).count();
    }
  }

  const Shape& shape(int blob) const { return shapes_[blob_index(blob)]; }
  int64_t floats() const {
    int64_t sum = 0;
    for (const auto& arrays : {data_, diffs_}) {
      for (const auto& [blob, count] : arrays) sum += count;
    }
    return sum;
  }

 private:
  size_t blob_index(int blob) const { return size_t(blob_indices_[size_t(blob)]); }

  std::vector<int> blob_indices_;           // indexed by the graph's blob
  std::vector<Shape> shapes_;               // indexed by blob_index(), as are all below
  std::vector<size_t> data_of_;             // the blob whose memory holds the data
  std::map<size_t, int64_t> data_, diffs_;  // floats
};

/// Bytes of a layer's buffers other than its blobs.
Result<int64_t> bytes_of(const Graph& graph, const Node& node, const Written& blobs,
                         Device& device) {
  if (node.type->source || dynamic_cast<const ExternalLayer*>(node.layer.get())) return 0;
  NodeBlobs views;
  for (int bottom : node.bottoms) views.bottoms.push_back({.shape = blobs.shape(bottom)});
  for (int top : node.tops) views.tops.push_back({.shape = blobs.shape(top)});
  for (int p : node.params) views.params.push_back({.shape = graph.params()[size_t(p)].shape});
  NodeProgram program(node, graph, device, views);
  CFT_TRY(program.forward());
  CFT_TRY(program.backward());
  return program.places().bytes;
}

}  // namespace

Result<int64_t> open_net_bytes(const Graph& graph) {
  const auto device = make_cpu_device();
  CFT_ASSIGN(const std::vector<Shape> shapes, graph.infer(0));
  Written written(graph, shapes);
  int64_t own = 0;
  for (const Node& node : graph.nodes()) {
    written.add(node);
    CFT_ASSIGN(const int64_t bytes, bytes_of(graph, node, written, *device));
    own += bytes;
  }
  return (2 * graph.arena_size() + written.floats()) * int64_t(sizeof(float)) + own;
}

}  // namespace cafetiere
