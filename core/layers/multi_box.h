// SPDX-License-Identifier: Apache-2.0
// MultiBox: the targets and losses of MultiBoxLoss for each prior box of an image (SSD).
#pragma once

#include <cmath>
#include <vector>

#include "core/base/elementary.h"
#include "core/layers/indices.h"
#include "core/layers/match_boxes.h"
#include "core/layers/smooth_l1.h"

namespace cafetiere {

struct MultiBox {
  using Param = caffe::MultiBoxLossParameter;

  Param p;
  int64_t images, priors, objects;
  int64_t classes() const { return p.num_classes(); }
  int64_t background() const { return p.background_label_id(); }
  /// Location predictions per prior: one, or one per class.
  int64_t kinds() const { return p.share_location() ? 1 : classes(); }
  int64_t place(int64_t prior, int64_t label) const {
    return 4 * (prior * kinds() + (p.share_location() ? 0 : label));
  }

  /// The loss of these scores for class `label`: softmax, or a sigmoid per class.
  double class_loss(const float* scores, int64_t label) const {
    if (p.conf_loss_type() == Param::SOFTMAX) return softmax_loss(scores, label);
    double sum = 0;
    for (int64_t c = 0; c < classes(); ++c) {
      const double x = scores[c];
      sum += std::max(x, 0.) - (c == label ? x : 0) +
             elementary::log(1 + elementary::exp(-std::fabs(x)));
    }
    return sum;
  }
  /// The derivative with respect to score c.
  float class_slope(const float* scores, int64_t c, int64_t label) const {
    const double share = p.conf_loss_type() == Param::SOFTMAX
                             ? elementary::exp(-softmax_loss(scores, c))
                             : 1 / (1 + elementary::exp(-double(scores[c])));
    return float(share) - (c == label ? 1.F : 0.F);
  }

  double place_loss(float d) const {
    return p.loc_loss_type() == Param::L2 ? 0.5 * double(d) * double(d) : SmoothL1().value(d);
  }
  float place_slope(float d) const {
    return p.loc_loss_type() == Param::L2 ? d : SmoothL1().slope(d);
  }
  /// Whether an edge of a prior counts; with bp_inside, only an edge inside the image does.
  bool counts(const Box& prior, int64_t edge) const {
    if (!p.bp_inside()) return true;
    const float at[] = {prior.x1, prior.y1, prior.x2, prior.y2};
    return at[edge] >= 0 && at[edge] <= 1;
  }

  /// Sets, for each prior of an image, `kind` to its target class, or to -1 if it does not count,
  /// and `target` to its encoded target box. `scores` and `places` are those of the image.
  void assign(int64_t image, const float* scores, const float* places, const Priors& of,
              const float* rows, float* kind, float* target) const {
    const std::vector<Object> all = objects_of(rows, image);
    const PriorCode code{p.code_type(), p.encode_variance_in_target()};
    const std::vector<Box> boxes = p.use_prior_for_matching() ? of.boxes() : decoded(of, places);
    const Matches matches = match_boxes(boxes, all, p);
    std::fill_n(target, 4 * priors, 0.F);
    int64_t matched = 0;
    for (int64_t i = 0; i < priors; ++i) {
      const int object = matches.object[size_t(i)];
      kind[i] = -1;
      if (object >= 0) {
        const Object& o = all[size_t(object)];
        kind[i] = float(std::max<int64_t>(o.label, 0));
        code.encode(o.box, of.box(i), of.variance(i), target + 4 * i);
        ++matched;
      } else if (p.mining_type() == Param::NONE) {
        kind[i] = float(background());
      }
    }
    if (p.mining_type() == Param::MAX_NEGATIVE) {
      mine_negatives(scores, places, of, matches, matched, kind);
    } else if (p.mining_type() == Param::HARD_EXAMPLE) {
      mine_examples(scores, places, of, matches, kind, target);
    }
  }

 private:
  /// -log softmax(scores)[c].
  double softmax_loss(const float* scores, int64_t c) const {
    const float top = *std::max_element(scores, scores + classes());
    double sum = 0;
    for (int64_t i = 0; i < classes(); ++i) {
      sum += elementary::exp(double(scores[i]) - double(top));
    }
    return elementary::log(sum) - (double(scores[c]) - double(top));
  }

  std::vector<Object> objects_of(const float* rows, int64_t image) const {
    std::vector<Object> found;
    for (const float* row = rows; row < rows + objects * kObjectValues; row += kObjectValues) {
      if (int64_t(row[0]) != image || row[0] < 0) continue;
      if (!p.use_difficult_gt() && row[7] != 0) continue;
      const int64_t label =
          p.map_object_to_agnostic() ? background() + 1 : index_below(row[1], classes());
      found.push_back({label, {row[3], row[4], row[5], row[6]}});
    }
    return found;
  }

  /// The boxes that the location predictions encode.
  std::vector<Box> decoded(const Priors& of, const float* places) const {
    const PriorCode code{p.code_type(), p.encode_variance_in_target()};
    std::vector<Box> boxes;
    for (int64_t i = 0; i < priors; ++i) {
      boxes.push_back(code.decode(places + 4 * i, of.box(i), of.variance(i)));
    }
    return boxes;
  }

  /// Selects as negatives the free priors that overlap no object and score least as background, in
  /// proportion to the matched ones.
  void mine_negatives(const float* scores, const float* places, const Priors& of,
                      const Matches& matches, int64_t matched, float* kind) const {
    std::vector<int64_t> free;
    std::vector<float> losses;
    for (int64_t i = 0; i < priors; ++i) {
      if (matches.object[size_t(i)] != kFree) continue;
      if (!(matches.overlap[size_t(i)] < p.neg_overlap())) continue;
      free.push_back(i);
      losses.push_back(float(class_loss(scores + i * classes(), background())));
    }
    const auto most = int64_t(double(p.neg_pos_ratio()) * double(matched));
    for (const int64_t i : hardest(free, losses, most, of, places)) kind[i] = float(background());
  }

  /// Keeps the sample_size priors of an image with the largest losses; matched priors not among
  /// them do not count.
  void mine_examples(const float* scores, const float* places, const Priors& of,
                     const Matches& matches, float* kind, const float* target) const {
    std::vector<int64_t> all;
    std::vector<float> losses;
    for (int64_t i = 0; i < priors; ++i) {
      if (matches.object[size_t(i)] == kLeftOut) continue;
      const bool free = kind[i] < 0;
      const int64_t label = free ? background() : int64_t(kind[i]);
      double loss = class_loss(scores + i * classes(), label);
      for (int64_t c = 0; c < 4 && !free; ++c) {
        loss += place_loss(places[place(i, label) + c] - target[4 * i + c]);
      }
      all.push_back(i);
      losses.push_back(float(loss));
    }
    std::vector<float> wanted(size_t(priors), -1.F);
    for (const int64_t i : hardest(all, losses, p.sample_size(), of, places)) {
      wanted[size_t(i)] = kind[i] < 0 ? float(background()) : kind[i];
    }
    std::ranges::copy(wanted, kind);
  }

  /// The priors with the largest losses, at most `most`; with nms_param, priors that overlap one
  /// with a larger loss are removed first.
  std::vector<int64_t> hardest(const std::vector<int64_t>& among, const std::vector<float>& losses,
                               int64_t most, const Priors& of, const float* places) const {
    std::vector<int> order;
    const auto& nms = p.nms_param();
    if (p.has_nms_param() && nms.nms_threshold() > 0) {
      const std::vector<Box> all = p.use_prior_for_nms() ? of.boxes() : decoded(of, places);
      std::vector<Box> boxes;
      for (const int64_t i : among) boxes.push_back(all[size_t(i)]);
      order = suppress(boxes, by_score(losses, nms.has_top_k() ? nms.top_k() : -1),
                       {.threshold = nms.nms_threshold(), .eta = nms.eta(), .most = most});
    } else {
      order = by_score(losses, most);
    }
    std::vector<int64_t> chosen;
    for (const int i : order) chosen.push_back(among[size_t(i)]);
    return chosen;
  }
};

}  // namespace cafetiere
