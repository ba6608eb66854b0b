// SPDX-License-Identifier: Apache-2.0
#include "core/data/datum.h"

#include <fmt/format.h>

namespace cafetiere {
namespace {

/// Whether a shape has `values` values; avoids an overflow of the product.
bool fills(const Shape& shape, int64_t values) {
  if (shape[0] < 1 || shape[1] < 1 || shape[2] < 1 || values < 1) return false;
  const int64_t lines = shape[0] * shape[1];  // each factor has at most 31 bits
  return values % lines == 0 && values / lines == shape[2];
}

}  // namespace

ImageColor datum_color(const caffe::TransformationParameter& param) {
  if (param.force_color()) return ImageColor::kColor;
  return param.force_gray() ? ImageColor::kGray : ImageColor::kStored;
}

Result<DatumPixels> datum_pixels(const caffe::Datum& datum, ImageColor color,
                                 std::vector<uint8_t>& planes) {
  if (datum.encoded()) {
    Result<Image> image = decode_image(datum.data(), color);
    if (!image.ok()) return image.status().with_context("its encoded image");
    planes.resize(image->pixels.size());
    to_planes(*image, planes.data());
    return DatumPixels{image->shape(), planes, {}};
  }
  DatumPixels pixels;
  pixels.shape = Shape{datum.channels(), datum.height(), datum.width()};
  const std::string& data = datum.data();
  if (!data.empty()) {
    pixels.bytes = {reinterpret_cast<const uint8_t*>(data.data()), data.size()};
  } else {
    pixels.floats = {datum.float_data().data(), static_cast<size_t>(datum.float_data_size())};
  }
  const size_t values = pixels.bytes.size() + pixels.floats.size();
  if (fills(pixels.shape, static_cast<int64_t>(values))) return pixels;
  return invalid_argument(
      fmt::format("it holds {} values for an image of {} x {} x {}; write it again", values,
                  datum.channels(), datum.height(), datum.width()));
}

caffe::Datum make_datum(const Image& image, int label) {
  caffe::Datum datum;
  datum.set_channels(image.channels);
  datum.set_height(image.height);
  datum.set_width(image.width);
  datum.set_label(label);
  datum.set_encoded(false);
  datum.mutable_data()->resize(image.pixels.size());
  to_planes(image, reinterpret_cast<uint8_t*>(datum.mutable_data()->data()));
  return datum;
}

}  // namespace cafetiere
