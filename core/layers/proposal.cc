// SPDX-License-Identifier: Apache-2.0
// Proposal: the boxes of a region proposal network, like the Python layer of Faster R-CNN (Ren et
// al. 2015). Bottoms: scores (1, 2 A, H, W), of which the last A are those of objects; deltas (1, 4
// A, H, W); the image's height, width and scale. Tops: regions (R, 5), with image index 0, and,
// optionally, their scores (R, 1).
#include <fmt/format.h>

#include <cmath>

#include "core/device/vector_math.h"
#include "core/layers/boxes.h"
#include "core/layers/detections.h"

namespace cafetiere {
namespace {

using ProposalParam = caffe::ProposalParameter;

std::vector<float> given_or(const google::protobuf::RepeatedField<float>& given,
                            std::vector<float> absent) {
  return given.empty() ? std::move(absent) : std::vector<float>(given.begin(), given.end());
}

/// The anchors at the first pixel: each ratio at each scale.
std::vector<Box> anchors(const ProposalParam& p) {
  const double side = p.base_size(), center = (side - 1) / 2;
  std::vector<Box> boxes;
  for (const float ratio : given_or(p.ratio(), {0.5F, 1, 2})) {
    const double width = std::nearbyint(std::sqrt(side * side / double(ratio)));
    const double height = std::nearbyint(width * double(ratio));
    for (const float scale : given_or(p.scale(), {8, 16, 32})) {
      const double x = (width * double(scale) - 1) / 2, y = (height * double(scale) - 1) / 2;
      boxes.push_back({float(center - x), float(center - y), float(center + x), float(center + y)});
    }
  }
  return boxes;
}

/// An anchor shifted and scaled by `delta`, clipped to the image.
Box moved(const Box& anchor, const float (&delta)[4], float image_w, float image_h) {
  const float w = anchor.width() + 1, h = anchor.height() + 1;
  const float x = delta[0] * w + anchor.x1 + w / 2, y = delta[1] * h + anchor.y1 + h / 2;
  const float half_w = vec::exp(delta[2]) * w / 2, half_h = vec::exp(delta[3]) * h / 2;
  const auto inside = [](float v, float size) {
    return std::clamp(v, 0.F, std::max(size - 1, 0.F));
  };
  return {inside(x - half_w, image_w), inside(y - half_h, image_h), inside(x + half_w, image_w),
          inside(y + half_h, image_h)};
}

struct Proposer {
  std::vector<Box> anchors;
  float stride, least_side;
  int64_t before, after;
  float threshold;

  std::vector<std::vector<float>> propose(int64_t height, int64_t width, const float* scores,
                                          const float* deltas, const float* image) const {
    std::vector<Box> boxes;
    std::vector<float> of_boxes;
    const int64_t pixels = height * width, count = int64_t(anchors.size());
    for (int64_t i = 0; i < pixels; ++i) {
      const float x = float(i % width) * stride, y = float(i / width) * stride;
      for (int64_t a = 0; a < count; ++a) {
        const Box& at = anchors[size_t(a)];
        float delta[4];
        for (int64_t d = 0; d < 4; ++d) delta[d] = deltas[(4 * a + d) * pixels + i];
        const Box box =
            moved({at.x1 + x, at.y1 + y, at.x2 + x, at.y2 + y}, delta, image[1], image[0]);
        const float least = least_side * image[2];
        if (!(box.width() + 1 >= least && box.height() + 1 >= least)) continue;
        boxes.push_back(box);
        of_boxes.push_back(scores[(count + a) * pixels + i]);
      }
    }
    const Suppression rule{.threshold = threshold, .edge = 1, .most = after};
    std::vector<std::vector<float>> tops(2);
    for (const int i : suppress(boxes, by_score(of_boxes, before), rule)) {
      const Box& b = boxes[size_t(i)];
      tops[0].insert(tops[0].end(), {0, b.x1, b.y1, b.x2, b.y2});
      tops[1].push_back(of_boxes[size_t(i)]);
    }
    return tops;
  }
};

class Proposal : public DetectionLayer {
 public:
  using DetectionLayer::DetectionLayer;

  Status shape(LayerShapes& s) const override {
    const ProposalParam& p = param().proposal_param();
    const auto positive = [](float v) { return v > 0; };
    if (p.feat_stride() == 0 || p.base_size() == 0 || !std::ranges::all_of(p.ratio(), positive) ||
        !std::ranges::all_of(p.scale(), positive)) {
      return invalid_argument("feat_stride, base_size, ratio and scale must be above 0");
    }
    const Shape &scores = s.bottoms[0], &deltas = s.bottoms[1];
    const auto count = int64_t(anchors(p).size());
    if (!(scores == Shape{1, 2 * count, scores.axes() == 4 ? scores[2] : 0,
                          scores.axes() == 4 ? scores[3] : 0}) ||
        !(deltas == Shape{1, 4 * count, scores[2], scores[3]})) {
      return invalid_argument(
          fmt::format("{0} anchors need scores (1, {1}, H, W) and deltas (1, {2}, H, W), one image "
                      "at a time, not "
                      "{3} and {4}",
                      count, 2 * count, 4 * count, scores.str(), deltas.str()));
    }
    if (s.bottoms[2].count() < 3) {
      return invalid_argument(
          "needs the image's height, width and scale as the third bottom, not " +
          s.bottoms[2].str());
    }
    const int64_t most = std::max<int64_t>(1, after());
    s.tops[0] = {most, 5};
    if (s.tops.size() > 1) s.tops[1] = {most, 1};
    return {};
  }

 protected:
  Detect detector() const override {
    const ProposalParam& p = param().proposal_param();
    const Proposer proposer{anchors(p), float(p.feat_stride()), float(p.min_size()), before(),
                            after(),    p.nms_thresh()};
    return [proposer](const std::vector<Shape>& shapes, const std::vector<const float*>& in,
                      size_t tops) {
      auto found = proposer.propose(shapes[0][2], shapes[0][3], in[0], in[1], in[2]);
      found.resize(tops);
      return found;
    };
  }
  int row_axis() const override { return 0; }

 private:
  bool training() const { return param().phase() == caffe::TRAIN; }
  int64_t before() const {
    const ProposalParam& p = param().proposal_param();
    return !p.has_pre_nms_topn() && training() ? 12000 : p.pre_nms_topn();
  }
  int64_t after() const {
    const ProposalParam& p = param().proposal_param();
    return !p.has_post_nms_topn() && training() ? 2000 : p.post_nms_topn();
  }
};

}  // namespace

extern const LayerType layer_proposal{.name = "Proposal",
                                      .min_bottoms = 3,
                                      .max_bottoms = 3,
                                      .max_tops = 2,
                                      .create = create_layer<Proposal>};

}  // namespace cafetiere
