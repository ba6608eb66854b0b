// SPDX-License-Identifier: Apache-2.0
// SegAccuracy (DeepLab): pixel accuracy, mean recall and mean intersection over union of the
// classes that occur, from a batch's confusion matrix. Bottoms: scores (N, C, H, W), labels; top
// (1, 1, 1, 3). Each batch is evaluated separately; reset: false, which accumulates, is rejected.
#include "core/device/row_major.h"
#include "core/layers/class_scores.h"

namespace cafetiere {
namespace {

/// Pixel counts by true and predicted class.
struct Confusion {
  int64_t classes;
  std::vector<int64_t> counts;

  explicit Confusion(int64_t classes) : classes(classes), counts(size_t(classes * classes)) {}
  int64_t& at(int64_t label, int64_t found) { return counts[size_t(label * classes + found)]; }

  /// Accuracy, mean recall, mean intersection over union.
  void score(float* out) {
    double right = 0, all = 0, recalls = 0, overlaps = 0, with_label = 0, present = 0;
    for (int64_t c = 0; c < classes; ++c) {
      double labelled = 0, found = 0;
      for (int64_t other = 0; other < classes; ++other) {
        labelled += double(at(c, other));
        found += double(at(other, c));
      }
      const auto hits = double(at(c, c));
      right += hits, all += labelled;
      if (labelled > 0) recalls += hits / labelled, ++with_label;
      if (labelled + found > 0) overlaps += hits / (labelled + found - hits), ++present;
    }
    out[0] = all > 0 ? float(right / all) : 0;
    out[1] = with_label > 0 ? float(recalls / with_label) : 0;
    out[2] = present > 0 ? float(overlaps / present) : 0;
  }
};

class SegAccuracy : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    if (!param().seg_accuracy_param().reset()) {
      return invalid_argument("reset: false counts over batches; it is not available, remove it");
    }
    CFT_TRY(ClassScores::along(s.bottoms[0], 1, s.bottoms[1]).status());
    s.tops[0] = {1, 1, 1, 3};
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    CFT_ASSIGN(const ClassScores s,
               ClassScores::along(plan.bottom_shape(0), 1, plan.bottom_shape(1)));
    const auto& given = param().seg_accuracy_param().ignore_label();
    const std::vector<int32_t> ignored(given.begin(), given.end());
    serial_step(plan.program, plan.step("forward"), {plan.bottoms[0], plan.bottoms[1]},
                {plan.new_top(0)},
                [s, ignored](const auto& in, const auto& out, const RunContext&) {
                  Confusion confusion(s.classes);
                  for (int64_t i = 0; i < s.outer * s.inner; ++i) {
                    const int64_t label = index_below(in[1][i], s.classes);
                    if (label < 0 || std::ranges::count(ignored, int32_t(label)) > 0) continue;
                    int64_t best = 0;
                    for (int64_t c = 1; c < s.classes; ++c) {
                      if (in[0][s.at(i, c)] > in[0][s.at(i, best)]) best = c;
                    }
                    ++confusion.at(label, best);
                  }
                  confusion.score(out[0]);
                });
    return {};
  }
};

}  // namespace

extern const LayerType layer_seg_accuracy{.name = "SegAccuracy",
                                          .min_bottoms = 2,
                                          .max_bottoms = 2,
                                          .create = create_layer<SegAccuracy>,
                                          .no_label = true,
                                          .score = true};

}  // namespace cafetiere
