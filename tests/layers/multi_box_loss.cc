// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::HasSubstr;

std::string multi_box(int images, int priors, int objects, const std::string& fields,
                      const std::string& top = "") {
  const int64_t count = priors;
  return input("loc", {images, 4 * count}) + input("conf", {images, 3 * count}) +
         input("prior", {1, 2, 4 * count}) + input("label", {1, 1, objects, 8}) +
         layer("MultiBoxLoss",
               "bottom: 'loc' bottom: 'conf' bottom: 'prior' bottom: 'label' top: 'y' "
               "propagate_down: true propagate_down: true propagate_down: false "
               "propagate_down: false",
               "multibox_loss_param { num_classes: 3 " + fields + " } " + top);
}

TEST(MultiBoxLoss, Gradients) {
  for (const std::string fields :
       {"", "mining_type: NONE loc_loss_type: L2 loc_weight: 2", "match_type: BIPARTITE"}) {
    check_layer({.layers = multi_box(2, 7, 5, "code_type: CORNER " + fields), .labels = 2});
  }
  check_layer(
      {.layers = multi_box(2, 7, 5, "code_type: CORNER", "loss_param { normalization: FULL }"),
       .labels = 2});
}

/// Priors at the corners of the image, then two that lie across the first object; variances 0.5.
Figures scene() {
  Figures f;
  f["prior"] = {0, 0,    0.4F, 0.4F, 0.6F, 0.6F, 1,    1, 0.6F, 0,
                1, 0.4F, 0.1F, 0,    0.5F, 0.4F, 0.3F, 0, 0.7F, 0.4F};
  f["prior"].resize(40, 0.5F);
  f["loc"] = std::vector<float>(20, 0);
  f["conf"] = {0, 1, 0, 2, 0, 0, 0, 0, 3, 1, 1, 1, 0, 0, 0};
  f["label"] = {0,  1,  0,  0,    0,    0.4F, 0.4F, 0,  // of class 1, over prior 0
                0,  2,  0,  0.6F, 0.6F, 0.9F, 1,    0,  // of class 2, over prior 1
                -1, -1, -1, -1,   -1,   -1,   -1,   -1};
  return f;
}

double minus_log_softmax(const std::vector<double>& scores, size_t c) {
  double sum = 0;
  for (const double s : scores) sum += std::exp(s);
  return std::log(sum) - scores[c];
}

// Prior 0 takes object 0 by its overlap of 1, prior 1 object 1 (0.75); prior 3 overlaps object 0 by 0.6,
// which is enough. Of the free ones, 2 and 4, both are below neg_overlap, and 2 looks least like background.
TEST(MultiBoxLoss, ValuesOfTheFormula) {
  const double background2 = minus_log_softmax({0, 0, 3}, 0),
               background4 = minus_log_softmax({0, 0, 0}, 0);
  const double matched = minus_log_softmax({0, 1, 0}, 1) + minus_log_softmax({2, 0, 0}, 2) +
                         minus_log_softmax({1, 1, 1}, 1);
  // (x2 - x2 of the prior) / 0.5 of object 1; both edges of object 0 against prior 3.
  const auto smooth = [](double d) { return std::fabs(d) < 1 ? d * d / 2 : std::fabs(d) - 0.5; };
  const double places = smooth(0.2) + 2 * smooth(0.2);
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    const auto value = [&](const std::string& fields, const std::string& top = "") {
      return evaluate(multi_box(1, 5, 3, "code_type: CORNER " + fields, top), scene(), caffe::TRAIN,
                      *device)["y"][0];
    };
    EXPECT_NEAR(value(""), (places + matched + background2 + background4) / 3, 1e-5);
    EXPECT_NEAR(value("neg_pos_ratio: 0.4 loc_weight: 2"), (2 * places + matched + background2) / 3,
                1e-5);
    EXPECT_NEAR(value("", "loss_param { normalization: FULL }"),
                (places + matched + background2 + background4) / 5, 1e-5);
    EXPECT_NEAR(value("neg_overlap: 0.1"), (places + matched + background2) / 3, 1e-5)
        << "prior 4 overlaps an object by 1 / 7";
    const double bipartite = minus_log_softmax({0, 1, 0}, 1) + minus_log_softmax({2, 0, 0}, 2);
    EXPECT_NEAR(value("match_type: BIPARTITE"),
                (smooth(0.2) + bipartite + background2 + background4) / 2, 1e-5)
        << "prior 3 overlaps too much to be background";
  }
}

TEST(MultiBoxLoss, AnImageWithoutObjectsGivesNothing) {
  Figures empty = scene();
  for (size_t i = 0; i < empty["label"].size(); i += 8) empty["label"][i] = -1;
  const auto cpu = make_cpu_device();
  EXPECT_EQ(evaluate(multi_box(1, 5, 3, ""), empty, caffe::TRAIN, *cpu)["y"][0], 0);
}

TEST(MultiBoxLoss, Refusals) {
  EXPECT_THAT(refusal(multi_box(1, 5, 3, "conf_loss_type: LOGISTIC")), HasSubstr("LOGISTIC"));
  EXPECT_THAT(refusal(multi_box(1, 5, 3, "mining_type: HARD_EXAMPLE")), HasSubstr("HARD_EXAMPLE"));
  EXPECT_THAT(refusal(multi_box(1, 5, 3, "num_classes: 1")), HasSubstr("num_classes"));
}

}  // namespace
}  // namespace cafetiere
