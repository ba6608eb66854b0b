// SPDX-License-Identifier: Apache-2.0
// Datum records: Caffe's images in databases, as pixels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/data/image.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// The values of a record, channel by channel: bytes, or floats if there are no bytes.
struct DatumPixels {
  Shape shape;  ///< channels, height, width
  std::span<const uint8_t> bytes;
  std::span<const float> floats;
};

/// The channels that an encoded record is decoded to: according to force_color and force_gray, else
/// as stored.
ImageColor datum_color(const caffe::TransformationParameter& param);

/// Decodes an encoded record into `planes`; for others, checks that the number of values matches
/// the shape. The spans point into `datum` or `planes`.
Result<DatumPixels> datum_pixels(const caffe::Datum& datum, ImageColor color,
                                 std::vector<uint8_t>& planes);

/// An unencoded record of an image's planes.
caffe::Datum make_datum(const Image& image, int label);

}  // namespace cafetiere
