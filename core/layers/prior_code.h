// SPDX-License-Identifier: Apache-2.0
// SSD's encoding of a box relative to a prior box.
#pragma once

#include <cmath>
#include <vector>

#include "core/device/vector_math.h"
#include "core/layers/boxes.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

struct PriorCode {
  using Type = caffe::PriorBoxParameter::CodeType;

  Type type;
  bool plain = false;  ///< the numbers already include the variances

  /// Decodes four predicted numbers to a box, without clipping.
  Box decode(const float* number, const Box& prior, const float* variance) const {
    float v[4];
    for (int i = 0; i < 4; ++i) v[i] = number[i] * (plain ? 1 : variance[i]);
    const float w = prior.width(), h = prior.height();
    switch (type) {
      case caffe::PriorBoxParameter::CENTER_SIZE: {
        const float x = v[0] * w + (prior.x1 + prior.x2) / 2;
        const float y = v[1] * h + (prior.y1 + prior.y2) / 2;
        const float half_w = vec::exp(v[2]) * w / 2, half_h = vec::exp(v[3]) * h / 2;
        return {x - half_w, y - half_h, x + half_w, y + half_h};
      }
      case caffe::PriorBoxParameter::CORNER_SIZE:
        return {prior.x1 + v[0] * w, prior.y1 + v[1] * h, prior.x2 + v[2] * w, prior.y2 + v[3] * h};
      default:
        return {prior.x1 + v[0], prior.y1 + v[1], prior.x2 + v[2], prior.y2 + v[3]};
    }
  }

  /// The inverse of decode.
  void encode(const Box& box, const Box& prior, const float* variance, float* number) const {
    const float w = prior.width(), h = prior.height();
    switch (type) {
      case caffe::PriorBoxParameter::CENTER_SIZE:
        number[0] = ((box.x1 + box.x2) - (prior.x1 + prior.x2)) / 2 / w;
        number[1] = ((box.y1 + box.y2) - (prior.y1 + prior.y2)) / 2 / h;
        number[2] = vec::log(box.width() / w);
        number[3] = vec::log(box.height() / h);
        break;
      case caffe::PriorBoxParameter::CORNER_SIZE:
        number[0] = (box.x1 - prior.x1) / w, number[1] = (box.y1 - prior.y1) / h;
        number[2] = (box.x2 - prior.x2) / w, number[3] = (box.y2 - prior.y2) / h;
        break;
      default:
        number[0] = box.x1 - prior.x1, number[1] = box.y1 - prior.y1;
        number[2] = box.x2 - prior.x2, number[3] = box.y2 - prior.y2;
    }
    for (int i = 0; i < 4 && !plain; ++i) number[i] /= variance[i];
  }
};

/// Prior boxes as output by PriorBox: (1, 2, 4 P), boxes and variances.
struct Priors {
  const float* values;
  int64_t count;

  Box box(int64_t p) const {
    const float* b = values + 4 * p;
    return {b[0], b[1], b[2], b[3]};
  }
  std::vector<Box> boxes() const {
    std::vector<Box> all;
    for (int64_t p = 0; p < count; ++p) all.push_back(box(p));
    return all;
  }
  const float* variance(int64_t p) const { return values + 4 * (count + p); }
};

}  // namespace cafetiere
