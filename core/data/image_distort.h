// SPDX-License-Identifier: Apache-2.0
// Random colour distortion of images: SSD's distort_param.
#pragma once

#include "core/base/status.h"
#include "core/data/draws.h"
#include "core/data/image.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// Rejects negative deltas, and lower bounds above upper ones.
Status check_distortion(const caffe::DistortionParameter& param);

/// Applies brightness, contrast, saturation, hue and channel order, each with its probability; a
/// random choice decides whether contrast comes before or after saturation and hue. Steps are in
/// saturating 8-bit arithmetic, with hues from 0 to 180 as in OpenCV. Single-channel images get
/// brightness and contrast only.
void distort(const caffe::DistortionParameter& param, Draws& draws, Image* image);

/// Adds to the hue (in units of 2 degrees, without wrapping around) and multiplies the saturation
/// of a three-channel image, in 8-bit arithmetic.
void change_hsv(Image* image, float hue, float saturation);

}  // namespace cafetiere
