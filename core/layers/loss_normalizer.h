// SPDX-License-Identifier: Apache-2.0
// LossNormalizer: which positions count towards a loss and what their sum is divided by, as
// LossParameter says.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

struct LossNormalizer {
  using Mode = caffe::LossParameter::NormalizationMode;

  int64_t outer;    ///< images
  int64_t inner;    ///< positions of an image, each with a label
  bool has_ignore;  ///< whether positions labelled `ignore` are left out
  int32_t ignore;
  Mode mode;

  /// `absent` is what holds when the layer says neither `normalization` nor the older `normalize`.
  LossNormalizer(const caffe::LossParameter& p, int64_t outer, int64_t inner,
                 Mode absent = caffe::LossParameter::VALID)
      : outer(outer),
        inner(inner),
        has_ignore(p.has_ignore_label()),
        ignore(p.ignore_label()),
        mode(absent) {
    if (p.has_normalization()) {
      mode = p.normalization();
    } else if (p.has_normalize()) {
      mode = p.normalize() ? caffe::LossParameter::VALID : caffe::LossParameter::BATCH_SIZE;
    }
  }

  /// The sum of f(position) over the positions that count, divided.
  template <class F>
  float loss(const float* labels, const F& f) const {
    double sum = 0;
    const float divisor = for_each(labels, [&](int64_t i) { sum += f(i); });
    return float(sum / divisor);
  }
  /// Its gradient: f(position) writes that of a position that counts; all `count` values of dx are
  /// then scaled by weight / divisor, and those that nobody wrote are 0.
  template <class F>
  void gradient(const float* labels, float weight, float* dx, int64_t count, const F& f) const {
    std::fill_n(dx, count, 0.f);
    const float scale = weight / for_each(labels, f);
    for (int64_t i = 0; i < count; ++i) dx[i] *= scale;
  }

 private:
  /// Calls f(position) for each position that counts; returns the divisor, at least 1.
  template <class F>
  float for_each(const float* labels, const F& f) const {
    int64_t valid = 0;
    for (int64_t i = 0; i < outer * inner; ++i) {
      if (has_ignore && std::trunc(labels[i]) == float(ignore)) continue;
      ++valid;
      f(i);
    }
    return float(std::max<int64_t>(1, divisor(valid)));
  }

  int64_t divisor(int64_t valid) const {
    switch (mode) {
      case caffe::LossParameter::FULL:
        return outer * inner;
      case caffe::LossParameter::VALID:
        return valid;
      case caffe::LossParameter::BATCH_SIZE:
        return outer;
      case caffe::LossParameter::NONE:
        return 1;
    }
    return 1;
  }
};

}  // namespace cafetiere
