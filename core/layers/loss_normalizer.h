// SPDX-License-Identifier: Apache-2.0
// LossNormalizer: which positions count towards a loss and what their sum is divided by, according
// to LossParameter.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

struct LossNormalizer {
  using Mode = caffe::LossParameter::NormalizationMode;

  int64_t outer;  ///< images
  int64_t inner;  ///< labelled positions per image
  Mode mode;
  bool has_ignore = false;  ///< whether positions labelled `ignore` are skipped
  int32_t ignore = 0;
  float fixed = 1;  ///< the divisor of PRE_FIXED

  /// The mean over `images`, none of them skipped.
  explicit LossNormalizer(int64_t images)
      : outer(images), inner(1), mode(caffe::LossParameter::BATCH_SIZE) {}

  /// `absent` is the mode if the layer sets neither `normalization` nor the older `normalize`.
  LossNormalizer(const caffe::LossParameter& p, int64_t outer, int64_t inner,
                 Mode absent = caffe::LossParameter::VALID)
      : outer(outer),
        inner(inner),
        mode(absent),
        has_ignore(p.has_ignore_label()),
        ignore(p.ignore_label()),
        fixed(p.pre_fixed_normalizer()) {
    if (p.has_normalization()) {
      mode = p.normalization();
    } else if (p.has_normalize()) {
      mode = p.normalize() ? caffe::LossParameter::VALID : caffe::LossParameter::BATCH_SIZE;
    }
  }

  /// Whether position i counts. Reads the labels only if there is an ignored label.
  bool counts(const float* labels, int64_t i) const {
    return !has_ignore || std::trunc(labels[i]) != float(ignore);
  }

  /// The divisor of a sum over `valid` counted positions, at least 1.
  float divisor(int64_t valid) const {
    switch (mode) {
      case caffe::LossParameter::FULL:
        valid = outer * inner;
        break;
      case caffe::LossParameter::VALID:
        break;
      case caffe::LossParameter::BATCH_SIZE:
        valid = outer;
        break;
      case caffe::LossParameter::NONE:
        valid = 1;
        break;
      case caffe::LossParameter::PRE_FIXED:
        return std::max(1.F, fixed);
    }
    return float(std::max<int64_t>(1, valid));
  }
};

}  // namespace cafetiere
