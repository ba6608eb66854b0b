// SPDX-License-Identifier: Apache-2.0
#include "core/train/output_values.h"

#include <algorithm>
#include <numeric>

namespace cafetiere {

OutputValues::OutputValues(const Plan& full) {
  for (const Plan::Blob& blob : full.outputs()) {
    const bool mean = blob.shape.count() > kMostElements;
    const size_t values = mean ? 1 : size_t(blob.shape.count());
    outputs_.push_back({blob.name, blob.loss_weight, count_, values, mean});
    count_ += values;
  }
}

void OutputValues::add(const Plan& plan, double weight, std::span<double> sums) const {
  for (size_t o = 0; o < outputs_.size(); ++o) {
    const Output& output = outputs_[o];
    const Plan::Blob& blob = plan.outputs()[o];
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
