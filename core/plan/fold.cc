// SPDX-License-Identifier: Apache-2.0
#include "core/plan/fold.h"

#include <algorithm>

#include "core/device/row_major.h"

namespace cafetiere {

Folds choose_folds(const Graph& graph, const std::vector<bool>& needed,
                   const std::vector<int>& kept) {
  Folds folds(graph.nodes().size());
  std::vector<int> linear(graph.blob_names().size(), -1);  // per blob: the node that produces it
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (!needed[n] || node.tops.size() != 1) continue;
    const auto top = size_t(node.tops[0]);
    if (node.type->linear_in_channels && node.type->linear_in_channels(node.param)) {
      linear[top] = int(n);
    }
    if (node.bottoms.size() != 1 || !node.layer->is_channel_affine()) continue;
    const int by = linear[size_t(node.bottoms[0])];
    if (by < 0 || std::ranges::find(kept, node.bottoms[0]) != kept.end()) continue;
    folds.add(n, size_t(by));
    linear[top] = by;
  }
  return folds;
}

void fold(const ChannelAffine& follower, const Shape& shape, LoweringContext& layer) {
  Program& p = layer.program;
  const int64_t depth = shape.count() / shape[0];
  const TensorId weights = layer.new_tensor("folded weights", shape);
  range_step(p, layer.step("fold weights"), {layer.params[0], follower.scale}, {weights}, shape[0],
             [=](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
               for (int64_t o = begin; o < end; ++o) {
                 for (int64_t i = o * depth; i < (o + 1) * depth; ++i)
                   out[0][i] = in[0][i] * in[1][o];
               }
             });
  layer.params[0] = weights;
  const bool biased = layer.params.size() > 1;
  if (!biased && follower.shift == kNoTensor) return;
  const TensorId bias = layer.new_tensor("folded bias", {shape[0]});
  range_step(p, layer.step("fold bias"),
             {biased ? layer.params[1] : kNoTensor, follower.scale, follower.shift}, {bias},
             shape[0],
             [=](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
               for (int64_t o = begin; o < end; ++o) {
                 out[0][o] = (in[0] ? in[0][o] * in[1][o] : 0.F) + (in[2] ? in[2][o] : 0.F);
               }
             });
  layer.params.resize(2);
  layer.params[1] = bias;
}

}  // namespace cafetiere
