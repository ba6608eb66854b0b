// SPDX-License-Identifier: Apache-2.0
// OutputValues: the values of a net's outputs in a report.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace cafetiere {

/// A report has one value per element of an output, as in Caffe. Large outputs, such as a feature
/// map that no layer reads, have a single value: the mean of their elements.
class OutputValues {
 public:
  /// The maximum size of an output whose elements are reported individually, such as accuracies per
  /// class.
  static constexpr int64_t kMostElements = 1024;

  /// `full`: the net's plan for a whole batch. `detections`: outputs that are rows of
  /// DetectionEvaluate have one value, their mean average precision, which add() skips.
  explicit OutputValues(const Plan& full, bool detections = false);

  struct Output {
    std::string name;
    float loss_weight = 0;
    size_t first = 0, count = 0;  ///< the range of its values
    bool mean = false;            ///< a single value: the mean of all elements
    bool detections = false;
  };
  const std::vector<Output>& outputs() const { return outputs_; }
  /// The total number of values.
  size_t count() const { return count_; }

  /// Adds `weight` times each value that `plan` has just computed. The output of a partial batch
  /// may have fewer elements than that of a full one: only those are added.
  void add(const Plan& plan, double weight, std::span<double> sums) const;

 private:
  std::vector<Output> outputs_;
  size_t count_ = 0;
};

}  // namespace cafetiere
