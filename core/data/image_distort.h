// SPDX-License-Identifier: Apache-2.0
// Random changes of an image's colours: SSD's distort_param.
#pragma once

#include "core/base/status.h"
#include "core/data/draws.h"
#include "core/data/image.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// Refuses deltas below 0, and lower bounds above upper ones.
Status check_distortion(const caffe::DistortionParameter& param);

/// Brightness, contrast, saturation, hue and the order of channels, each with its probability; a coin says
/// whether contrast comes before or after saturation and hue. In steps of 8 bits that saturate, hues as
/// OpenCV's 0 to 180. An image of one channel gets brightness and contrast alone.
void distort(const caffe::DistortionParameter& param, Draws& draws, Image* image);

/// Adds to the hue (in half degrees, not taken around the circle) and multiplies the saturation of an
/// image of three channels, as bytes.
void change_hsv(Image* image, float hue, float saturation);

}  // namespace cafetiere
