// SPDX-License-Identifier: Apache-2.0
// The objects of an image during cropping, and the random crops of SSD's batch samplers.
#pragma once

#include <vector>

#include "core/base/box.h"
#include "core/base/status.h"
#include "core/data/draws.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// An object of an image, with its box in coordinates relative to the image's size.
struct AnnotatedBox {
  int label = 0, instance = 0;
  Box box{};
  bool difficult = false;
};

/// The objects of a row, group by group. An error names an invalid box.
Result<std::vector<AnnotatedBox>> boxes_of(const caffe::AnnotatedDatum& datum);

/// The objects that a crop keeps, in coordinates relative to the crop and clipped to it: those
/// whose center lies in it, or of which at least the fraction `emit_overlap` does.
std::vector<AnnotatedBox> project(const std::vector<AnnotatedBox>& objects, const Box& crop,
                                  const caffe::EmitConstraint& rule);

/// Rejects bounds that no crop can satisfy.
Status check_sampler(const caffe::BatchSampler& sampler);

/// Tries max_trials random crops within the image and adds those that satisfy the sampler's
/// constraint, at most max_sample.
void sample(const caffe::BatchSampler& sampler, const std::vector<AnnotatedBox>& objects,
            Draws& draws, std::vector<Box>* crops);

}  // namespace cafetiere
