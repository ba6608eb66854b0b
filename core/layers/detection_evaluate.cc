// SPDX-License-Identifier: Apache-2.0
// DetectionEvaluate (SSD): classifies detections as true or false positives. Bottoms:
// DetectionOutput's rows (.., 7), AnnotatedData's objects (.., 8); top (1, 1, R, 5): a row per
// class (-1, class, number of objects, -1, -1), then a row per detection (image, class, score, true
// positive, false positive). A detection of a difficult object that does not count is neither.
#include <fmt/format.h>

#include <map>

#include "core/layers/boxes.h"
#include "core/layers/detections.h"
#include "core/layers/indices.h"
#include "core/layers/match_boxes.h"

namespace cafetiere {
namespace {

using EvaluateParam = caffe::DetectionEvaluateParameter;

constexpr int64_t kDetectionValues = 7, kJudgedValues = 5;

struct Evaluator {
  int64_t classes, background;
  float threshold;
  bool difficult;  ///< whether difficult objects count

  explicit Evaluator(const EvaluateParam& p)
      : classes(p.num_classes()),
        background(p.background_label_id()),
        threshold(p.overlap_threshold()),
        difficult(p.evaluate_difficult_gt()) {}

  struct Truth {
    Box box;
    bool counts;
    bool found = false;
  };
  struct Found {
    float score;
    Box box;
  };
  using Key = std::pair<int64_t, int64_t>;  // image, class

  std::vector<float> run(const float* detections, int64_t count, const float* objects,
                         int64_t objects_count) const {
    std::map<Key, std::vector<Truth>> truths;
    std::vector<int64_t> counted(size_t(classes), 0);
    for (const float* o = objects; o < objects + objects_count * kObjectValues;
         o += kObjectValues) {
      const int64_t label = index_below(o[1], classes);
      if (!(o[0] >= 0) || label < 0 || label == background) continue;
      const bool counts = difficult || o[7] == 0;
      truths[{int64_t(o[0]), label}].push_back({{o[3], o[4], o[5], o[6]}, counts});
      counted[size_t(label)] += counts;
    }
    std::map<Key, std::vector<Found>> found;
    for (const float* d = detections; d < detections + count * kDetectionValues;
         d += kDetectionValues) {
      const int64_t label = index_below(d[1], classes);
      if (!(d[0] >= 0) || !(d[1] >= 0) || label < 0 || label == background) continue;
      found[{int64_t(d[0]), label}].push_back({d[2], {d[3], d[4], d[5], d[6]}});
    }
    std::vector<float> rows;
    for (int64_t c = 0; c < classes; ++c) {
      if (c != background)
        rows.insert(rows.end(), {-1, float(c), float(counted[size_t(c)]), -1, -1});
    }
    for (auto& [key, of_key] : found) judge(key, of_key, truths[key], &rows);
    return rows;
  }

 private:
  /// In descending order of score: an object can be detected only once.
  void judge(const Key& key, std::vector<Found>& found, std::vector<Truth>& truths,
             std::vector<float>* rows) const {
    std::ranges::stable_sort(found, std::ranges::greater(), &Found::score);
    for (const Found& f : found) {
      float best = -1;
      Truth* match = nullptr;
      for (Truth& truth : truths) {
        const float with = overlap(f.box, truth.box);
        if (with > best) best = with, match = &truth;
      }
      bool right = false, wrong = false;
      if (!match || best < threshold) {
        wrong = true;
      } else if (match->counts) {
        (match->found ? wrong : right) = true;
        match->found = true;
      }
      rows->insert(rows->end(), {float(key.first), float(key.second), f.score, right ? 1.F : 0.F,
                                 wrong ? 1.F : 0.F});
    }
  }
};

class DetectionEvaluate : public DetectionLayer {
 public:
  using DetectionLayer::DetectionLayer;

  Status shape(LayerShapes& s) const override {
    const EvaluateParam& p = param().detection_evaluate_param();
    if (p.num_classes() < 2) return invalid_argument("give num_classes, the background included");
    if (!(p.overlap_threshold() > 0)) return invalid_argument("overlap_threshold must be above 0");
    const Shape &detections = s.bottoms[0], &objects = s.bottoms[1];
    const auto is_rows = [](const Shape& shape, int64_t values) {
      return shape.axes() >= 1 && shape[shape.axes() - 1] == values;
    };
    if (!is_rows(detections, kDetectionValues) || !is_rows(objects, kObjectValues)) {
      return invalid_argument(
          fmt::format("needs detections (1, 1, D, 7) and objects (1, 1, G, 8), not {} and {}",
                      detections.str(), objects.str()));
    }
    s.tops[0] = {1, 1, p.num_classes() + detections.count() / kDetectionValues, kJudgedValues};
    return {};
  }

 protected:
  Detect detector() const override {
    return [evaluator = Evaluator(param().detection_evaluate_param())](
               const std::vector<Shape>& shapes, const std::vector<const float*>& in, size_t) {
      return std::vector<std::vector<float>>{evaluator.run(
          in[0], shapes[0].count() / kDetectionValues, in[1], shapes[1].count() / kObjectValues)};
    };
  }
  int row_axis() const override { return 2; }
};

}  // namespace

extern const LayerType layer_detection_evaluate{.name = "DetectionEvaluate",
                                                .min_bottoms = 2,
                                                .max_bottoms = 2,
                                                .create = create_layer<DetectionEvaluate>,
                                                .score = true};

}  // namespace cafetiere
