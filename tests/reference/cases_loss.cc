// SPDX-License-Identifier: Apache-2.0
// Losses and scores.
#include <fmt/format.h>

#include "tests/layers/harness.h"
#include "tests/reference/cases.h"

namespace cafetiere {
namespace {

const char* const kLabelled = "bottom: 'x' bottom: 'label' top: 'y'";

/// Scores of `classes` along an axis and a label for each of the other positions.
struct Scores {
  int classes, axis;
  std::string text;
};

Scores scores(Draw& d, std::string (*bottom)(const std::string&, const std::vector<int64_t>&)) {
  Scores s{d.integer(2, 9), d.integer(1, 2), ""};
  const int n = d.integer(1, 6), m = d.integer(1, 5);
  s.text = s.axis == 1 ? bottom("x", {n, s.classes, m}) : bottom("x", {n, m, s.classes});
  s.text += input("label", {n, m});
  return s;
}

std::string normalization(Draw& d) {
  std::string fields = d.coin() ? "ignore_label: 1 " : "";
  fields += d.pick({"", "normalization: FULL", "normalization: VALID", "normalization: BATCH_SIZE",
                    "normalization: NONE"});
  return "loss_param { " + fields + " }";
}

/// One top: Caffe 1.0 refuses any loss_weight for two.
ParityNet softmax_loss(Draw& d) {
  const Scores s = scores(d, input);
  return {.text = s.text +
                  layer("SoftmaxWithLoss", kLabelled,
                        fmt::format("{} softmax_param {{ axis: {} }}", normalization(d), s.axis)),
          .classes = s.classes};
}

ParityNet infogain_loss(Draw& d) {
  const Scores s = scores(d, learned);
  return {
      .text = s.text + input("prob", {s.classes, s.classes}) +
              layer("InfogainLoss",
                    "bottom: 'x' bottom: 'label' bottom: 'prob' top: 'y' "
                    "propagate_down: true propagate_down: false propagate_down: false",
                    fmt::format("{} infogain_loss_param {{ axis: {} }}", normalization(d), s.axis)),
      .classes = s.classes};
}

ParityNet accuracy(Draw& d) {
  const Scores s = scores(d, input);
  return {
      .text = s.text +
              layer("Accuracy", kLabelled + std::string(d.coin() ? " top: 'by_class'" : ""),
                    fmt::format("accuracy_param {{ axis: {} top_k: {} {} }}", s.axis,
                                d.integer(1, s.classes - 1), d.coin() ? "ignore_label: 1" : "")),
      .classes = s.classes,
      .backward = false};
}

ParityNet sigmoid_cross_entropy(Draw& d) {
  const std::vector<int64_t> dims = {d.integer(1, 6), d.integer(1, 8)};
  const bool ignore = d.coin();
  const std::string target = ignore ? "label" : "prob";
  return {.text = input("x", dims) + input(target, dims) +
                  layer("SigmoidCrossEntropyLoss",
                        fmt::format("bottom: 'x' bottom: '{}' top: 'y'", target),
                        ignore ? normalization(d) : ""),
          .classes = 2};
}

ParityNet euclidean_loss(Draw& d) {
  const std::vector<int64_t> dims = {d.integer(1, 6), d.integer(1, 8), d.integer(1, 3)};
  return {.text = input("x", dims) + input("x_other", dims) +
                  layer("EuclideanLoss", "bottom: 'x' bottom: 'x_other' top: 'y'")};
}

ParityNet hinge_loss(Draw& d) {
  const int n = d.integer(1, 6), classes = d.integer(2, 9);
  return {.text = input("x", {n, classes}) + input("label", {n}) +
                  layer("HingeLoss", kLabelled,
                        fmt::format("hinge_loss_param {{ norm: {} }}", d.pick({"L1", "L2"}))),
          .classes = classes};
}

ParityNet contrastive_loss(Draw& d) {
  const std::vector<int64_t> dims = {d.integer(2, 8), d.integer(1, 6)};
  return {.text = input("x", dims) + input("x_other", dims) + input("flag", {dims[0]}) +
                  layer("ContrastiveLoss", "bottom: 'x' bottom: 'x_other' bottom: 'flag' top: 'y'",
                        fmt::format("contrastive_loss_param {{ margin: {} legacy_version: {} }}",
                                    d.real(1, 5), d.coin()))};
}

ParityNet multinomial_logistic_loss(Draw& d) {
  const int n = d.integer(1, 6), classes = d.integer(2, 9);
  return {.text = input("x_prob", {n, classes}) + input("label", {n}) +
                  layer("MultinomialLogisticLoss", "bottom: 'x_prob' bottom: 'label' top: 'y'"),
          .classes = classes};
}

}  // namespace

std::vector<ParityCase> loss_cases() {
  return {{"SoftmaxWithLoss", softmax_loss, 12},
          {"InfogainLoss", infogain_loss, 8},
          {"Accuracy", accuracy, 8},
          {"SigmoidCrossEntropyLoss", sigmoid_cross_entropy, 8},
          {"EuclideanLoss", euclidean_loss},
          {"HingeLoss", hinge_loss},
          {"ContrastiveLoss", contrastive_loss},
          {"MultinomialLogisticLoss", multinomial_logistic_loss}};
}

}  // namespace cafetiere
