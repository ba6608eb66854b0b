// SPDX-License-Identifier: Apache-2.0
// ClassScores: scores with the classes along one axis, and one label for each position of the
// others.
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "core/graph/layer.h"
#include "core/layers/indices.h"

namespace cafetiere {

/// The lower bound of a probability in a loss (Caffe's kLOG_THRESHOLD).
inline constexpr float kLeastProbability = 1e-20f;

struct ClassScores {
  int64_t outer = 0, classes = 0, inner = 0;

  /// The classes lie along `axis`; there must be one label per position.
  static Result<ClassScores> along(const Shape& scores, int axis, const Shape& labels) {
    CFT_ASSIGN(const int a, scores.axis(axis));
    return checked({scores.count(0, a), scores[a], scores.count(a + 1)}, scores, labels);
  }
  /// All axes after the batch axis are classes.
  static Result<ClassScores> of_rows(const Shape& scores, const Shape& labels) {
    CFT_TRY(scores.axis(0).status());
    return checked({scores[0], scores.count(1), 1}, scores, labels);
  }

  /// The shape for Device::softmax.
  Shape shape() const { return {outer, classes, inner}; }
  int64_t count() const { return outer * classes * inner; }
  int64_t at(int64_t position, int64_t c) const {
    return (position / inner * classes + c) * inner + position % inner;
  }
  /// A label out of range counts as class 0; emit_loss() reports it.
  int64_t class_of(float label) const { return std::max<int64_t>(0, index_below(label, classes)); }

 private:
  static Result<ClassScores> checked(ClassScores s, const Shape& scores, const Shape& labels) {
    if (s.classes > 0 && labels.count() == s.outer * s.inner) return s;
    return invalid_argument(
        fmt::format("needs one label for each of the {} positions of scores {} but labels are {}",
                    s.outer * s.inner, scores.str(), labels.str()));
  }
};

/// LayerType::labels for classes along an axis; `p` may specify an ignored label.
template <class P>
LabelRange labels_along(const Shape& scores, int axis, const P& p) {
  const Result<int> a = scores.axis(axis);
  return {a.ok() ? scores[*a] : 0,
          p.has_ignore_label() ? std::optional<int32_t>(p.ignore_label()) : std::nullopt};
}
/// LayerType::labels where all axes after the batch axis are classes.
inline LabelRange labels_of_rows(const caffe::LayerParameter&, const Shape& scores) {
  return {scores.count(1), {}};
}

}  // namespace cafetiere
