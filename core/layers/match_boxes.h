// SPDX-License-Identifier: Apache-2.0
// Assigns objects to prior boxes (SSD).
#pragma once

#include <vector>

#include "core/layers/prior_code.h"

namespace cafetiere {

inline constexpr int64_t kObjectValues = 8;  ///< values per row of objects
inline constexpr int kFree = -1, kLeftOut = -2;

struct Object {
  int64_t label;
  Box box;
};

struct Matches {
  std::vector<int> object;     ///< per prior: its object, kFree or kLeftOut
  std::vector<float> overlap;  ///< per prior: its largest overlap with any object
};

/// Matches the priors' `boxes` to objects. First, greedily, the pairs with the largest overlap,
/// each prior and each object at most once; then, with PER_PREDICTION, every free prior to the
/// object that it overlaps most, if by at least overlap_threshold. Overlaps up to 1e-6 count as 0.
inline Matches match_boxes(const std::vector<Box>& boxes, const std::vector<Object>& objects,
                           const caffe::MultiBoxLossParameter& p) {
  constexpr float kLeast = 1e-6F;
  const size_t count = boxes.size(), all = objects.size();
  Matches m{std::vector<int>(count, kFree), std::vector<float>(count, 0.F)};
  std::vector<float> overlaps(count * all);
  for (size_t i = 0; i < count; ++i) {
    const Box& prior = boxes[i];
    if (p.ignore_cross_boundary_bbox() &&
        (prior.x1 < 0 || prior.y1 < 0 || prior.x2 > 1 || prior.y2 > 1)) {
      m.object[i] = kLeftOut;
      continue;
    }
    for (size_t o = 0; o < all; ++o) {
      const float with = overlap(prior, objects[o].box);
      overlaps[i * all + o] = with > kLeast ? with : 0;
      m.overlap[i] = std::max(m.overlap[i], overlaps[i * all + o]);
    }
  }
  std::vector<bool> taken(all, false);
  for (size_t round = 0; round < all; ++round) {
    float best = 0;
    size_t prior = 0, object = 0;
    for (size_t i = 0; i < count; ++i) {
      if (m.object[i] != kFree) continue;
      for (size_t o = 0; o < all; ++o) {
        if (taken[o] || overlaps[i * all + o] <= best) continue;
        best = overlaps[i * all + o], prior = i, object = o;
      }
    }
    if (best == 0) break;
    m.object[prior] = int(object);
    taken[object] = true;
  }
  if (p.match_type() != caffe::MultiBoxLossParameter::PER_PREDICTION) return m;
  for (size_t i = 0; i < count; ++i) {
    if (m.object[i] != kFree) continue;
    float best = 0;
    for (size_t o = 0; o < all; ++o) {
      const float with = overlaps[i * all + o];
      if (with < p.overlap_threshold() || with <= best) continue;
      best = with, m.object[i] = int(o);
    }
  }
  return m;
}

}  // namespace cafetiere
