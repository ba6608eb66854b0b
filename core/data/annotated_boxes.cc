// SPDX-License-Identifier: Apache-2.0
#include "core/data/annotated_boxes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace cafetiere {
namespace {

/// The fraction of `box` that lies inside `other`.
float covered(const Box& box, const Box& other) {
  const float all = area(box), both = area(common(box, other));
  return all > 0 ? both / all : 0;
}

bool keeps(const Box& crop, const Box& object, const caffe::EmitConstraint& rule) {
  if (rule.emit_type() == caffe::EmitConstraint::MIN_OVERLAP) {
    return covered(object, crop) > rule.emit_overlap();
  }
  const float x = (object.x1 + object.x2) / 2, y = (object.y1 + object.y2) / 2;
  return x >= crop.x1 && x <= crop.x2 && y >= crop.y1 && y <= crop.y2;
}

/// Whether at least one object satisfies all bounds; true if there are no bounds.
bool fulfils(const caffe::SampleConstraint& rule, const Box& crop,
             const std::vector<AnnotatedBox>& objects) {
  const bool bounded = rule.has_min_jaccard_overlap() || rule.has_max_jaccard_overlap() ||
                       rule.has_min_sample_coverage() || rule.has_max_sample_coverage() ||
                       rule.has_min_object_coverage() || rule.has_max_object_coverage();
  if (!bounded) return true;
  const auto within = [](float value, bool has_min, float min, bool has_max, float max) {
    return !(has_min && value < min) && !(has_max && value > max);
  };
  return std::ranges::any_of(objects, [&](const AnnotatedBox& object) {
    return within(overlap(crop, object.box), rule.has_min_jaccard_overlap(),
                  rule.min_jaccard_overlap(), rule.has_max_jaccard_overlap(),
                  rule.max_jaccard_overlap()) &&
           within(covered(crop, object.box), rule.has_min_sample_coverage(),
                  rule.min_sample_coverage(), rule.has_max_sample_coverage(),
                  rule.max_sample_coverage()) &&
           within(covered(object.box, crop), rule.has_min_object_coverage(),
                  rule.min_object_coverage(), rule.has_max_object_coverage(),
                  rule.max_object_coverage());
  });
}

/// A crop of random size, aspect ratio and position; the ratio is limited so that it fits into the
/// image.
Box random_crop(const caffe::Sampler& s, Draws& draws) {
  const float scale = draws.between(s.min_scale(), s.max_scale());
  const float low = std::max(s.min_aspect_ratio(), scale * scale);
  const float high = std::min(s.max_aspect_ratio(), 1 / (scale * scale));
  const float root = std::sqrt(draws.between(low, high));
  const float w = std::min(1.F, scale * root), h = std::min(1.F, scale / root);
  const float x = draws.between(0, 1 - w), y = draws.between(0, 1 - h);
  return {x, y, x + w, y + h};
}

}  // namespace

Result<std::vector<AnnotatedBox>> boxes_of(const caffe::AnnotatedDatum& datum) {
  if (datum.has_type() && datum.type() != caffe::AnnotatedDatum::BBOX) {
    return invalid_argument("its annotations are no boxes; only BBOX is known");
  }
  std::vector<AnnotatedBox> objects;
  for (const caffe::AnnotationGroup& group : datum.annotation_group()) {
    for (const caffe::Annotation& annotation : group.annotation()) {
      const caffe::NormalizedBBox& b = annotation.bbox();
      const Box box{b.xmin(), b.ymin(), b.xmax(), b.ymax()};
      const bool finite = std::isfinite(box.x1) && std::isfinite(box.y1) && std::isfinite(box.x2) &&
                          std::isfinite(box.y2);
      if (!finite) {
        return invalid_argument(fmt::format("object {} of label {} has no finite box",
                                            objects.size(), group.group_label()));
      }
      objects.push_back({group.group_label(), annotation.instance_id(), box, b.difficult()});
    }
  }
  return objects;
}

std::vector<AnnotatedBox> project(const std::vector<AnnotatedBox>& objects, const Box& crop,
                                  const caffe::EmitConstraint& rule) {
  std::vector<AnnotatedBox> kept;
  for (const AnnotatedBox& object : objects) {
    if (!keeps(crop, object.box, rule)) continue;
    AnnotatedBox moved = object;
    const auto x = [&](float v) { return std::clamp((v - crop.x1) / crop.width(), 0.F, 1.F); };
    const auto y = [&](float v) { return std::clamp((v - crop.y1) / crop.height(), 0.F, 1.F); };
    moved.box = {x(object.box.x1), y(object.box.y1), x(object.box.x2), y(object.box.y2)};
    if (area(moved.box) > 0) kept.push_back(moved);
  }
  return kept;
}

Status check_sampler(const caffe::BatchSampler& b) {
  const caffe::Sampler& s = b.sampler();
  if (!b.use_original_image()) {
    return invalid_argument("batch_sampler: use_original_image: false is not available");
  }
  if (!(s.min_scale() > 0 && s.min_scale() <= s.max_scale() && s.max_scale() <= 1)) {
    return invalid_argument(
        fmt::format("batch_sampler: min_scale {} and max_scale {} must be in (0, 1], in that order",
                    s.min_scale(), s.max_scale()));
  }
  if (!(s.min_aspect_ratio() > 0 && s.min_aspect_ratio() <= 1 && s.max_aspect_ratio() >= 1)) {
    return invalid_argument(fmt::format(
        "batch_sampler: min_aspect_ratio {} must be in (0, 1], max_aspect_ratio {} at least 1",
        s.min_aspect_ratio(), s.max_aspect_ratio()));
  }
  constexpr uint32_t kMostTrials = 10000;
  if (b.max_trials() <= kMostTrials) return {};
  return invalid_argument(
      fmt::format("batch_sampler: max_trials {} is above {}", b.max_trials(), kMostTrials));
}

void sample(const caffe::BatchSampler& b, const std::vector<AnnotatedBox>& objects, Draws& draws,
            std::vector<Box>* crops) {
  uint32_t found = 0;
  for (uint32_t trial = 0; trial < b.max_trials(); ++trial) {
    if (b.has_max_sample() && found >= b.max_sample()) return;
    const Box crop = random_crop(b.sampler(), draws);
    if (!fulfils(b.sample_constraint(), crop, objects)) continue;
    crops->push_back(crop);
    ++found;
  }
}

}  // namespace cafetiere
