// SPDX-License-Identifier: Apache-2.0
#include "core/train/label_range.h"

#include <set>

namespace cafetiere {
namespace {

template <typename Param>
std::optional<int32_t> ignored_of(const Param& p) {
  return p.has_ignore_label() ? std::optional<int32_t>(p.ignore_label()) : std::nullopt;
}

/// The range that a layer asks for; no classes if it does not compare labels with scores.
LabelRange asked_by(const Node& node, const Shape& scores) {
  const std::string_view type = node.type->name;
  const caffe::LayerParameter& p = node.param;
  const auto along = [&](int axis) {
    const Result<int> a = scores.axis(axis);
    return a.ok() ? scores[*a] : 0;
  };
  if (type == "SoftmaxWithLoss") {
    return {along(p.softmax_param().axis()), ignored_of(p.loss_param())};
  }
  if (type == "Accuracy") {
    return {along(p.accuracy_param().axis()), ignored_of(p.accuracy_param())};
  }
  if (type == "InfogainLoss") {
    return {along(p.infogain_loss_param().axis()), ignored_of(p.loss_param())};
  }
  if (type == "HingeLoss" || type == "MultinomialLogisticLoss") return {scores.count(1), {}};
  return {};
}

}  // namespace

LabelRange label_range(const Graph& graph, const std::vector<Shape>& shapes, int blob) {
  LabelRange found;
  std::set<int> aliases{blob};
  for (const Node& node : graph.nodes()) {
    if (std::string_view(node.type->name) == "Split" && aliases.count(node.bottoms[0])) {
      aliases.insert(node.tops.begin(), node.tops.end());
    }
    if (node.bottoms.size() < 2 || !aliases.count(node.bottoms[1])) continue;
    const LabelRange range = asked_by(node, shapes[size_t(node.bottoms[0])]);
    if (range.classes > 0 && !range.ignored) return range;
    if (found.classes == 0) found = range;
  }
  return found;
}

}  // namespace cafetiere
