// SPDX-License-Identifier: Apache-2.0
// Yolov3DetectionOutput (MobileNet-YOLO): decodes boxes at several scales, then applies non-maximum
// suppression to all classes together. Bottoms: (1, num_box (5 + classes), H, W) per scale: x, y,
// w, h, objectness, classes; top (1, 1, K, 7): 0, class + 1, score, x1, y1, x2, y2 relative to the
// image. If nothing is found, a row of -1.
#include <fmt/format.h>

#include <cmath>

#include "core/device/vector_math.h"
#include "core/layers/boxes.h"
#include "core/layers/detections.h"

namespace cafetiere {
namespace {

using YoloParam = caffe::Yolov3DetectionOutputParameter;

float yolo_share(float x) { return 1 / (1 + vec::exp(-x)); }

/// The boxes found so far.
struct YoloCandidates {
  std::vector<Box> boxes;
  std::vector<float> scores;
  std::vector<int> classes;
};

/// The size of box `n` at scale `t`.
struct Anchor {
  float width, height;
};

class YoloDetector {
 public:
  explicit YoloDetector(YoloParam p) : p_(std::move(p)) {}

  Anchor anchor(size_t t, int n) const {
    const int per_scale = p_.mask_size() / p_.mask_group_num();
    const int m = p_.mask(int(t) * per_scale + n);
    const auto scale = float(p_.anchors_scale(int(t)));
    return {p_.biases(2 * m) / scale, p_.biases(2 * m + 1) / scale};
  }

  void read(const Shape& shape, const float* values, size_t t, YoloCandidates* found) const {
    const int64_t height = shape[2], width = shape[3], pixels = height * width;
    for (int n = 0; n < p_.num_box(); ++n) {
      const Anchor a = anchor(t, n);
      const float* box = values + n * (5 + p_.num_classes()) * pixels;
      for (int64_t i = 0; i < pixels; ++i) {
        const float object = yolo_share(box[4 * pixels + i]);
        if (!(object > p_.confidence_threshold())) continue;  // no class score can exceed it
        const float x = (float(i % width) + yolo_share(box[i])) / float(width);
        const float y = (float(i / width) + yolo_share(box[pixels + i])) / float(height);
        const float w = vec::exp(box[2 * pixels + i]) * a.width / float(width);
        const float h = vec::exp(box[3 * pixels + i]) * a.height / float(height);
        for (int c = 0; c < p_.num_classes(); ++c) {
          const float score = object * yolo_share(box[(5 + c) * pixels + i]);
          if (!(score > p_.confidence_threshold())) continue;
          found->boxes.push_back({x - w / 2, y - h / 2, x + w / 2, y + h / 2});
          found->scores.push_back(score);
          found->classes.push_back(c);
        }
      }
    }
  }

  std::vector<float> rows(const YoloCandidates& found) const {
    const Suppression rule{.threshold = p_.nms_threshold(), .equal = false};
    std::vector<float> rows;
    for (const int i : suppress(found.boxes, by_score(found.scores), rule)) {
      const Box& b = found.boxes[size_t(i)];
      rows.insert(rows.end(), {0, float(found.classes[size_t(i)] + 1), found.scores[size_t(i)],
                               b.x1, b.y1, b.x2, b.y2});
    }
    if (rows.empty()) rows.assign(7, -1.F);
    return rows;
  }

 private:
  YoloParam p_;
};

class Yolov3DetectionOutput : public DetectionLayer {
 public:
  using DetectionLayer::DetectionLayer;

  Status shape(LayerShapes& s) const override {
    CFT_TRY(check(int(s.bottoms.size())));
    const YoloParam& p = param().yolov3_detection_output_param();
    const int64_t channels = int64_t{p.num_box()} * (5 + p.num_classes());
    int64_t most = 0;
    for (const Shape& bottom : s.bottoms) {
      if (bottom.axes() != 4 || bottom[0] != 1 || bottom[1] != channels) {
        return invalid_argument(
            fmt::format("needs bottoms (1, {}, H, W), num_box * (5 + num_classes) channels of one "
                        "image, not {}",
                        channels, bottom.str()));
      }
      most += bottom.count(2) * p.num_box() * p.num_classes();
    }
    s.tops[0] = {1, 1, std::max<int64_t>(1, most), 7};
    return {};
  }

 protected:
  Detect detector() const override {
    return [found = YoloDetector(param().yolov3_detection_output_param())](
               const std::vector<Shape>& shapes, const std::vector<const float*>& in, size_t) {
      YoloCandidates candidates;
      for (size_t t = 0; t < in.size(); ++t) found.read(shapes[t], in[t], t, &candidates);
      return std::vector<std::vector<float>>{found.rows(candidates)};
    };
  }
  int row_axis() const override { return 2; }

 private:
  Status check(int scales) const {
    const YoloParam& p = param().yolov3_detection_output_param();
    if (p.gaussian_box()) {
      return invalid_argument("gaussian_box is not available; decode such boxes outside the net");
    }
    if (p.num_classes() <= 0 || p.num_box() <= 0 || p.mask_group_num() <= 0) {
      return invalid_argument("num_classes, num_box and mask_group_num must be above 0");
    }
    const int per_scale = p.mask_size() / p.mask_group_num();
    if (p.anchors_scale_size() < scales || per_scale < p.num_box() ||
        (scales - 1) * per_scale + p.num_box() > p.mask_size()) {
      return invalid_argument(fmt::format(
          "{} bottoms need an anchors_scale each, and mask_group_num groups of {} masks", scales,
          p.num_box()));
    }
    for (const int m : p.mask()) {
      if (m >= 0 && 2 * m + 1 < p.biases_size()) continue;
      return invalid_argument(
          fmt::format("mask {} names no pair of the {} biases", m, p.biases_size()));
    }
    for (const int scale : p.anchors_scale()) {
      if (scale <= 0) return invalid_argument("anchors_scale must be above 0");
    }
    return {};
  }
};

}  // namespace

extern const LayerType layer_yolov3_detection_output{.name = "Yolov3DetectionOutput",
                                                     .max_bottoms = -1,
                                                     .create = create_layer<Yolov3DetectionOutput>};

}  // namespace cafetiere
