// SPDX-License-Identifier: Apache-2.0
// The codecs behind image.h: one file per format, the only one to include its library.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/base/status.h"
#include "core/data/image.h"

namespace cafetiere {

Result<Image> decode_jpeg(std::span<const uint8_t> bytes, ImageColor color);
Result<Image> decode_png(std::span<const uint8_t> bytes, ImageColor color);
Result<Image> decode_webp(std::span<const uint8_t> bytes, ImageColor color);
/// Binary PGM and PPM with 255 levels; used only for images in tables.
Result<Image> decode_pnm(std::span<const uint8_t> bytes, ImageColor color);

Result<std::string> encode_jpeg(const Image& image, int quality);
Result<std::string> encode_png(const Image& image);

/// An image of zeros; an error if it has more than kMaxImagePixels.
Result<Image> new_image(int64_t height, int64_t width, int channels);

/// OpenCV's weights of blue, green and red for gray (Rec. 601), in units of 1/2^15.
inline uint8_t gray_of(int blue, int green, int red) {
  return static_cast<uint8_t>((blue * 3735 + green * 19235 + red * 9798 + (1 << 14)) >> 15);
}

}  // namespace cafetiere
