// SPDX-License-Identifier: Apache-2.0
// A JPEG, PNG or WebP file, decoded each way; small images are resized and encoded as well.
#include "core/data/image.h"

#include "fuzz/targets.h"

void cafetiere::fuzz::image(std::string_view bytes) {
  constexpr size_t kSmall = 1 << 14;
  for (const ImageColor color : {ImageColor::kStored, ImageColor::kColor, ImageColor::kGray}) {
    const auto image = decode_image(bytes, color);
    if (!image.ok()) return;
    if (image->pixels.size() > kSmall) continue;
    (void)encode_image(resize_image(*image, 5, 7), "png");
  }
}
