// SPDX-License-Identifier: Apache-2.0
// The objects of an image while it is cropped, and the random crops of SSD's batch samplers.
#pragma once

#include <vector>

#include "core/base/box.h"
#include "core/base/status.h"
#include "core/data/draws.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// An object of an image; its box is in shares of the image's sides.
struct AnnotatedBox {
  int label = 0, instance = 0;
  Box box{};
  bool difficult = false;
};

/// The objects of a row, group after group. An error says which box is no box.
Result<std::vector<AnnotatedBox>> boxes_of(const caffe::AnnotatedDatum& datum);

/// The objects that a crop keeps, in shares of its sides and clipped to them: those whose center lies in
/// it, or of which at least `emit_overlap` does.
std::vector<AnnotatedBox> project(const std::vector<AnnotatedBox>& objects, const Box& crop,
                                  const caffe::EmitConstraint& rule);

/// Refuses bounds that no crop could have.
Status check_sampler(const caffe::BatchSampler& sampler);

/// Tries max_trials random crops and adds those that fulfil the sampler's constraint, at most max_sample.
/// The crops lie in the image.
void sample(const caffe::BatchSampler& sampler, const std::vector<AnnotatedBox>& objects,
            Draws& draws, std::vector<Box>* crops);

}  // namespace cafetiere
