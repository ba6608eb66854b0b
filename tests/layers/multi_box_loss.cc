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

/// What stays where the loss is that of one prior alone.
double sigmoid_loss(const std::vector<double>& scores, size_t label) {
  double sum = 0;
  for (size_t c = 0; c < scores.size(); ++c) {
    const double share = 1 / (1 + std::exp(-scores[c]));
    sum -= std::log(c == label ? share : 1 - share);
  }
  return sum;
}

TEST(MultiBoxLoss, GradientsOfItsRarerForms) {
  for (const std::string fields :
       {"conf_loss_type: LOGISTIC mining_type: NONE", "share_location: false mining_type: NONE",
        "bp_inside: true mining_type: NONE", "map_object_to_agnostic: true mining_type: NONE"}) {
    const bool shared = fields.find("share_location") == std::string::npos;
    std::string net = multi_box(2, 7, 5, "code_type: CORNER " + fields);
    if (!shared) {
      net = input("loc", {2, 84}) + net.substr(net.find("layer", net.find("'loc'") + 1));
    }
    check_layer({.layers = net, .labels = 2});
  }
  // What is mined changes with the values.
  for (const std::string fields :
       {"mining_type: HARD_EXAMPLE sample_size: 4", "use_prior_for_matching: false",
        "nms_param { nms_threshold: 0.5 }", "conf_loss_type: LOGISTIC"}) {
    check_layer({.layers = multi_box(2, 7, 5, "code_type: CORNER " + fields),
                 .labels = 2,
                 .numeric = false});
  }
}

// The scene as in ValuesOfTheFormula: priors 0, 1 and 3 are matched; places cost 0.2^2 / 2 three times.
TEST(MultiBoxLoss, ValuesOfItsRarerForms) {
  const double place = 0.02;
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    const auto value = [&](const std::string& fields) {
      return evaluate(multi_box(1, 5, 3, "code_type: CORNER " + fields), scene(), caffe::TRAIN,
                      *device)["y"][0];
    };
    const double logistic = sigmoid_loss({0, 1, 0}, 1) + sigmoid_loss({2, 0, 0}, 2) +
                            sigmoid_loss({1, 1, 1}, 1) + sigmoid_loss({0, 0, 3}, 0) +
                            sigmoid_loss({0, 0, 0}, 0);
    EXPECT_NEAR(value("conf_loss_type: LOGISTIC"), (3 * place + logistic) / 3, 1e-5);
    // All objects are of class 1.
    const double agnostic = minus_log_softmax({0, 1, 0}, 1) + minus_log_softmax({2, 0, 0}, 1) +
                            minus_log_softmax({1, 1, 1}, 1) + minus_log_softmax({0, 0, 3}, 0) +
                            minus_log_softmax({0, 0, 0}, 0);
    EXPECT_NEAR(value("map_object_to_agnostic: true"), (3 * place + agnostic) / 3, 1e-5);
    // The hardest two: prior 2 (background, 3.09) and prior 1 (class 2, 2.24).
    const double hard = minus_log_softmax({0, 0, 3}, 0) + minus_log_softmax({2, 0, 0}, 2);
    EXPECT_NEAR(value("mining_type: HARD_EXAMPLE sample_size: 2"), place + hard, 1e-5);
    // The places are 0: the boxes that they say are the priors'.
    EXPECT_NEAR(value("use_prior_for_matching: false"), value(""), 1e-6);
    // Priors 2 and 4 overlap by 0.04 / 0.24: one alone is mined.
    const double matched = minus_log_softmax({0, 1, 0}, 1) + minus_log_softmax({2, 0, 0}, 2) +
                           minus_log_softmax({1, 1, 1}, 1);
    EXPECT_NEAR(value("nms_param { nms_threshold: 0.1 } use_prior_for_nms: true"),
                (3 * place + matched + minus_log_softmax({0, 0, 3}, 0)) / 3, 1e-5);
  }
}

// Of prior 0 the left and upper edges lie outside.
TEST(MultiBoxLoss, BpInsideLeavesEdgesOutsideOut) {
  Figures f = scene();
  f["prior"][0] = f["prior"][1] = -0.1F;
  const auto cpu = make_cpu_device();
  const auto value = [&](const std::string& fields) {
    return evaluate(multi_box(1, 5, 3, "code_type: CORNER " + fields), f, caffe::TRAIN,
                    *cpu)["y"][0];
  };
  EXPECT_NEAR(value("") - value("bp_inside: true"), 2 * 0.02 / 3, 1e-5);
}

TEST(MultiBoxLoss, Refusals) {
  EXPECT_THAT(refusal(multi_box(1, 5, 3, "ignore_difficult_gt: true")),
              HasSubstr("ignore_difficult_gt"));
  EXPECT_THAT(refusal(multi_box(1, 5, 3, "mining_type: HARD_EXAMPLE sample_size: 0")),
              HasSubstr("sample_size"));
  EXPECT_THAT(refusal(multi_box(1, 5, 3, "share_location: false use_prior_for_matching: false")),
              HasSubstr("share_location"));
  EXPECT_THAT(refusal(multi_box(1, 5, 3, "num_classes: 1")), HasSubstr("num_classes"));
}

}  // namespace
}  // namespace cafetiere
