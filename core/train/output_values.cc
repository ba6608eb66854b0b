// SPDX-License-Identifier: Apache-2.0
#include "core/train/output_values.h"

#include <algorithm>
#include <numeric>

#include "core/train/mean_precision.h"

namespace cafetiere {

OutputValues::OutputValues(const Plan& full, bool detections) {
  for (const Plan::Blob& blob : full.outputs()) {
    const int axes = blob.shape.axes();
    const bool rows = detections && axes == 4 && blob.shape[axes - 1] == kEvaluationValues;
    const bool mean = !rows && blob.shape.count() > kMostElements;
    const size_t values = mean || rows ? 1 : size_t(blob.shape.count());
    outputs_.push_back({blob.name, blob.loss_weight, count_, values, mean, rows});
    count_ += values;
  }
}

void OutputValues::add(const Plan& plan, double weight, std::span<double> sums) const {
  for (size_t o = 0; o < outputs_.size(); ++o) {
    const Output& output = outputs_[o];
    const Plan::Blob& blob = plan.outputs()[o];
    if (output.detections) continue;
    const std::span<const float> data(blob.data, size_t(blob.shape.count()));
    if (output.mean) {
      const double sum = std::accumulate(data.begin(), data.end(), 0.0);
      if (!data.empty()) sums[output.first] += weight * (sum / double(data.size()));
      continue;
    }
    for (size_t i = 0; i < std::min(output.count, data.size()); ++i) {
      sums[output.first + i] += weight * double(data[i]);
    }
  }
}

}  // namespace cafetiere
