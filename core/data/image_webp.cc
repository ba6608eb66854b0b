// SPDX-License-Identifier: Apache-2.0
// WebP with libwebp, which returns errors as values.
#include <fmt/format.h>
#include <webp/decode.h>

#include "core/data/image_codecs.h"

namespace cafetiere {
namespace {

Image to_gray(const Image& color) {
  Image gray{color.height, color.width, 1, std::vector<uint8_t>(color.pixels.size() / 3)};
  const uint8_t* p = color.pixels.data();
  for (uint8_t& pixel : gray.pixels) {
    pixel = gray_of(p[0], p[1], p[2]);
    p += 3;
  }
  return gray;
}

}  // namespace

Result<Image> decode_webp(std::span<const uint8_t> bytes, ImageColor color) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(bytes.data(), bytes.size(), &features) != VP8_STATUS_OK) {
    return invalid_argument("WebP: the header is damaged");
  }
  if (features.has_animation) {
    return invalid_argument("WebP: the file is an animation; store its frames as single images");
  }
  const bool alpha = features.has_alpha && color == ImageColor::kStored;
  CFT_ASSIGN(Image image, new_image(features.height, features.width, alpha ? 4 : 3));
  const auto decode = alpha ? WebPDecodeBGRAInto : WebPDecodeBGRInto;
  if (!decode(bytes.data(), bytes.size(), image.pixels.data(), image.pixels.size(),
              image.width * image.channels)) {
    return invalid_argument("WebP: the file is damaged or ends too early");
  }
  return color == ImageColor::kGray ? to_gray(image) : std::move(image);
}

}  // namespace cafetiere
