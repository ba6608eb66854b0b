// SPDX-License-Identifier: Apache-2.0
#include "core/train/mean_precision.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace cafetiere {
namespace {

struct Detection {
  double score;
  bool right, wrong;
};

/// Precision and recall after each detection, in descending order of score.
struct Curve {
  std::vector<double> precision, recall;

  Curve(std::vector<Detection> found, double objects) {
    std::ranges::stable_sort(found, std::ranges::greater(), &Detection::score);
    double right = 0, wrong = 0;
    for (const Detection& d : found) {
      right += d.right, wrong += d.wrong;
      precision.push_back(right + wrong > 0 ? right / (right + wrong) : 0);
      recall.push_back(right / objects);
    }
  }
  /// The maximum precision at a recall of at least `least`.
  double best(double least) const {
    double most = 0;
    for (size_t i = 0; i < recall.size(); ++i) {
      if (recall[i] >= least) most = std::max(most, precision[i]);
    }
    return most;
  }
};

double average(const Curve& curve, PrecisionForm form) {
  if (form == PrecisionForm::kElevenPoint) {
    double sum = 0;
    for (int tenth = 0; tenth <= 10; ++tenth) sum += curve.best(tenth / 10.) / 11;
    return sum;
  }
  const size_t count = curve.recall.size();
  std::vector<double> precision = curve.precision;
  for (size_t i = count; form == PrecisionForm::kMaxIntegral && i-- > 1;) {
    precision[i - 1] = std::max(precision[i - 1], precision[i]);
  }
  double sum = 0, before = 0;
  for (size_t i = 0; i < count; ++i) {
    sum += (curve.recall[i] - before) * precision[i];
    before = curve.recall[i];
  }
  return sum;
}

}  // namespace

Result<PrecisionForm> precision_form(const caffe::SolverParameter& solver) {
  const std::string& name = solver.ap_version();
  if (name == "Integral") return PrecisionForm::kIntegral;
  if (name == "MaxIntegral") return PrecisionForm::kMaxIntegral;
  if (name == "11point") return PrecisionForm::kElevenPoint;
  return invalid_argument(
      fmt::format("ap_version is \"{}\"; use \"Integral\", \"MaxIntegral\" or \"11point\"", name));
}

Result<bool> evaluates_detections(const caffe::SolverParameter& solver) {
  const std::string& type = solver.eval_type();
  if (type == "classification" || type == "detection") return type == "detection";
  return invalid_argument(fmt::format(
      "eval_type is \"{}\"; use \"classification\" or \"detection\"", solver.eval_type()));
}

std::map<int, double> average_precisions(std::span<const double> rows, PrecisionForm form) {
  std::map<int, double> objects;
  std::map<int, std::vector<Detection>> found;
  for (size_t i = 0; i + kEvaluationValues <= rows.size(); i += kEvaluationValues) {
    const auto row = rows.subspan(i, kEvaluationValues);
    if (!(row[1] >= 0)) continue;  // an unused row
    const int label = int(row[1]);
    if (row[0] < 0) {
      objects[label] += row[2];
    } else {
      found[label].push_back({row[2], row[3] > 0, row[4] > 0});
    }
  }
  std::map<int, double> result;
  for (const auto& [label, count] : objects) {
    result[label] = count > 0 ? average(Curve(found[label], count), form) : 0;
  }
  return result;
}

}  // namespace cafetiere
