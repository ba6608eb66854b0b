// SPDX-License-Identifier: Apache-2.0
// A JPEG, PNG, WebP or PNM file, decoded each way; small images are resized and encoded as well.
#include "core/data/image.h"

#include <span>

#include "core/data/image_codecs.h"
#include "fuzz/targets.h"

namespace {

using cafetiere::Image;
using cafetiere::ImageColor;
using cafetiere::Result;

Result<Image> decode(std::string_view bytes, ImageColor color) {
  if (!bytes.starts_with("P5") && !bytes.starts_with("P6")) {
    return cafetiere::decode_image(bytes, color);
  }
  return cafetiere::decode_pnm({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()},
                               color);
}

}  // namespace

void cafetiere::fuzz::image(std::string_view bytes) {
  constexpr size_t kSmall = 1 << 14;
  for (const ImageColor color : {ImageColor::kStored, ImageColor::kColor, ImageColor::kGray}) {
    const auto image = decode(bytes, color);
    if (!image.ok()) return;
    if (image->pixels.size() > kSmall) continue;
    (void)encode_image(resize_image(*image, 5, 7), "png");
  }
}
