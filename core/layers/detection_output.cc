// SPDX-License-Identifier: Apache-2.0
// DetectionOutput: decodes SSD's boxes and keeps the best of each class (Liu et al. 2016). Bottoms:
// locations (N, P L 4), scores after softmax (N, P C), priors (1, 2, 4 P) and, optionally, the
// images, which are ignored. Top (1, 1, K, 7): image, label, score, x1, y1, x2, y2. If nothing is
// found, N rows of the image's index followed by -1.
#include <fmt/format.h>

#include <cfloat>

#include "core/layers/detections.h"
#include "core/layers/prior_code.h"

namespace cafetiere {
namespace {

using DetectionParam = caffe::DetectionOutputParameter;

constexpr int64_t kValues = 7;

/// Detects the objects of a batch.
class Detector {
 public:
  explicit Detector(const DetectionParam& p)
      : classes_(p.num_classes()),
        background_(p.background_label_id()),
        shared_(p.share_location()),
        keep_(p.keep_top_k()),
        top_(p.nms_param().has_top_k() ? p.nms_param().top_k() : -1),
        threshold_(p.has_confidence_threshold() ? p.confidence_threshold() : -FLT_MAX),
        code_{p.code_type(), p.variance_encoded_in_target()},
        rule_{.threshold = p.nms_param().nms_threshold(), .eta = p.nms_param().eta()} {}

  std::vector<float> run(int64_t images, const Priors& priors, const float* places,
                         const float* scores) const {
    std::vector<float> rows;
    for (int64_t n = 0; n < images; ++n) {
      std::vector<Found> found = of_image(priors, places + n * priors.count * 4 * kinds(),
                                          scores + n * priors.count * classes_);
      for (const Found& f : found) {
        rows.insert(rows.end(),
                    {float(n), float(f.label), f.score, f.box.x1, f.box.y1, f.box.x2, f.box.y2});
      }
    }
    if (!rows.empty()) return rows;
    rows.assign(size_t(images * kValues), -1.F);
    for (int64_t n = 0; n < images; ++n) rows[size_t(n * kValues)] = float(n);
    return rows;
  }

 private:
  struct Found {
    int64_t label;
    float score;
    Box box;
  };
  int64_t kinds() const { return shared_ ? 1 : classes_; }

  /// Ordered by class, then by descending score.
  std::vector<Found> of_image(const Priors& priors, const float* places,
                              const float* scores) const {
    std::vector<Found> found;
    std::vector<float> best;
    for (int64_t c = 0; c < classes_; ++c) {
      if (c == background_) continue;
      for (const Found& f : of_class(priors, places, scores, c)) {
        found.push_back(f);
        best.push_back(f.score);
      }
    }
    if (keep_ < 0 || int64_t(found.size()) <= keep_) return found;
    std::vector<int> order = by_score(best, keep_);
    std::ranges::sort(order);
    std::vector<Found> kept;
    for (const int i : order) kept.push_back(found[size_t(i)]);
    return kept;
  }

  std::vector<Found> of_class(const Priors& priors, const float* places, const float* scores,
                              int64_t c) const {
    std::vector<int64_t> candidates;
    std::vector<float> of_candidates;
    for (int64_t p = 0; p < priors.count; ++p) {
      const float score = scores[p * classes_ + c];
      if (!(score > threshold_)) continue;
      candidates.push_back(p);
      of_candidates.push_back(score);
    }
    const std::vector<int> order = by_score(of_candidates, top_);
    std::vector<Box> boxes(candidates.size());
    for (const int i : order) {
      const int64_t p = candidates[size_t(i)];
      const float* place = places + 4 * (p * kinds() + (shared_ ? 0 : c));
      boxes[size_t(i)] = code_.decode(place, priors.box(p), priors.variance(p));
    }
    std::vector<Found> found;
    for (const int i : suppress(boxes, order, rule_)) {
      found.push_back({c, of_candidates[size_t(i)], boxes[size_t(i)]});
    }
    return found;
  }

  int64_t classes_, background_;
  bool shared_;
  int64_t keep_, top_;
  float threshold_;
  PriorCode code_;
  Suppression rule_;
};

class DetectionOutput : public DetectionLayer {
 public:
  using DetectionLayer::DetectionLayer;

  Status shape(LayerShapes& s) const override {
    const DetectionParam& p = param().detection_output_param();
    const Shape &places = s.bottoms[0], &scores = s.bottoms[1], &priors = s.bottoms[2];
    if (p.num_classes() == 0) return invalid_argument("give num_classes, above 0");
    const float eta = p.nms_param().eta();
    if (p.nms_param().nms_threshold() < 0 || !(eta > 0 && eta <= 1)) {
      return invalid_argument("nms_threshold must not be negative, and eta in (0, 1]");
    }
    if (priors.axes() < 3 || priors[1] != 2 || priors[2] % 4 != 0 || places.axes() < 1) {
      return invalid_argument("needs priors (1, 2, 4 P) as the third bottom, not " + priors.str());
    }
    const int64_t count = priors[2] / 4, kinds = p.share_location() ? 1 : p.num_classes();
    if (places.count(1) != count * kinds * 4 || scores.axes() < 1 || scores[0] != places[0] ||
        scores.count(1) != count * p.num_classes()) {
      return invalid_argument(fmt::format(
          "{} priors and {} classes need places (N, {}) and scores (N, {}), not {} and {}", count,
          p.num_classes(), count * kinds * 4, count * p.num_classes(), places.str(), scores.str()));
    }
    s.tops[0] = {1, 1, std::max<int64_t>(1, places[0] * most(p, count)), kValues};
    return {};
  }

 protected:
  Detect detector() const override {
    return [found = Detector(param().detection_output_param())](
               const std::vector<Shape>& shapes, const std::vector<const float*>& in, size_t) {
      const Priors priors{in[2], shapes[2][2] / 4};
      return std::vector<std::vector<float>>{found.run(shapes[0][0], priors, in[0], in[1])};
    };
  }
  int row_axis() const override { return 2; }

 private:
  /// The maximum number of objects per image; at least 1, since a row stands for no detection.
  static int64_t most(const DetectionParam& p, int64_t priors) {
    if (p.keep_top_k() >= 0) return std::max<int64_t>(1, p.keep_top_k());
    const bool limited = p.nms_param().has_top_k() && p.nms_param().top_k() >= 0;
    const int64_t of_class = limited ? std::min<int64_t>(priors, p.nms_param().top_k()) : priors;
    return std::max<int64_t>(1, of_class * p.num_classes());
  }
};

}  // namespace

extern const LayerType layer_detection_output{.name = "DetectionOutput",
                                              .min_bottoms = 3,
                                              .max_bottoms = 4,
                                              .create = create_layer<DetectionOutput>};

}  // namespace cafetiere
