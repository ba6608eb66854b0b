// SPDX-License-Identifier: Apache-2.0
// OutputValues: the values of a net's outputs in a report.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace cafetiere {

/// A report has a value for each element of an output, as in Caffe. An output of many elements,
/// such as a feature map that no layer reads, has one value: their mean.
class OutputValues {
 public:
  /// Elements of an output that are reported individually, such as the accuracy of each class.
  static constexpr int64_t kMostElements = 1024;

  /// `full`: the net's plan for a whole batch. `detections`: outputs of rows of DetectionEvaluate have one
  /// value, their mean average precision, which is not added up here.
  explicit OutputValues(const Plan& full, bool detections = false);

  struct Output {
    std::string name;
    float loss_weight = 0;
    size_t first = 0, count = 0;  ///< the range of its values
    bool mean = false;            ///< of all elements
    bool detections = false;
  };
  const std::vector<Output>& outputs() const { return outputs_; }
  /// Values of all outputs.
  size_t count() const { return count_; }

  /// Adds `weight` times each value that `plan` has just computed. A tail's output may have fewer
  /// elements than a full batch's: only those are added.
  void add(const Plan& plan, double weight, std::span<double> sums) const;

 private:
  std::vector<Output> outputs_;
  size_t count_ = 0;
};

}  // namespace cafetiere
