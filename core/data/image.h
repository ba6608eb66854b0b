// SPDX-License-Identifier: Apache-2.0
// Images: decoding JPEG, PNG and WebP files to pixels, encoding, and resizing like OpenCV.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/shape.h"

namespace cafetiere {

/// 8 bits per channel, rows from top to bottom, interleaved channels: gray; blue, green and red,
/// the order used by Caffe's nets; or these three and alpha.
struct Image {
  int height = 0;
  int width = 0;
  int channels = 0;
  std::vector<uint8_t> pixels;  ///< height * width * channels

  /// Channels, height and width: the shape of the image's planes.
  Shape shape() const { return {channels, height, width}; }
};

/// The channels returned by a decoder: those of the file (gray, colour, or colour and alpha),
/// always three, or always one. Other bit depths are converted to 8.
enum class ImageColor { kStored, kColor, kGray };

/// The mode for a net's number of input channels: gray for 1, colour for 3, otherwise as stored.
ImageColor color_for_channels(int64_t channels);

/// Larger images are rejected before memory is allocated for them.
inline constexpr int64_t kMaxImagePixels = int64_t{1} << 26;

/// "JPEG", "PNG" or "WebP", judged by the first bytes; "" if it is none of them.
std::string_view image_format(std::span<const uint8_t> bytes);

/// Decodes an image. Corrupt and truncated files are errors; colours are converted as in OpenCV's
/// imdecode. The EXIF orientation is ignored.
Result<Image> decode_image(std::span<const uint8_t> bytes, ImageColor color);
Result<Image> decode_image(std::string_view bytes, ImageColor color);

/// Reads and decodes a file; errors begin with its path.
Result<Image> read_image(const std::string& path, ImageColor color);

/// Encodes an image; `format` is "jpg" or "jpeg" (quality 95, without alpha) or "png".
Result<std::string> encode_image(const Image& image, std::string_view format);

/// Bilinear interpolation in the fixed-point arithmetic of OpenCV's INTER_LINEAR for bytes, with
/// identical results. Sizes must be at least 1.
Image resize_image(const Image& image, int height, int width);

/// The image with these planes; `shape` is channels, height and width.
Image from_planes(const uint8_t* planes, const Shape& shape);

/// Writes the image channel by channel, as nets read it: shape().count() bytes.
void to_planes(const Image& image, uint8_t* planes);

}  // namespace cafetiere
