// SPDX-License-Identifier: Apache-2.0
// PGM and PPM: raw pixels after a short header, for images that do not come from files.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/data/image_codecs.h"

namespace cafetiere {
namespace {

constexpr std::string_view kBetween = " \t\r\n";

/// Takes the next number of a header and removes it with the text before it.
bool take_number(std::string_view* text, int64_t* number) {
  text->remove_prefix(std::min(text->find_first_not_of(kBetween), text->size()));
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *number);
  if (error != std::errc()) return false;
  text->remove_prefix(size_t(end - text->data()));
  return true;
}

}  // namespace

Result<Image> decode_pnm(std::span<const uint8_t> bytes, ImageColor color) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const bool colored = text.starts_with("P6");
  text.remove_prefix(std::min<size_t>(2, text.size()));
  int64_t width = 0, height = 0, most = 0;
  if (!take_number(&text, &width) || !take_number(&text, &height) || !take_number(&text, &most) ||
      most != 255 || text.empty()) {
    return invalid_argument("PNM: the header is not one of P5 or P6 with 255 levels");
  }
  text.remove_prefix(1);
  const size_t stored = colored ? 3 : 1;
  const int channels = color == ImageColor::kStored ? int(stored)
                       : color == ImageColor::kGray ? 1
                                                    : 3;
  CFT_ASSIGN(Image image, new_image(height, width, channels));
  const size_t pixels = image.pixels.size() / size_t(channels);
  if (text.size() != pixels * stored) {
    return invalid_argument(fmt::format("PNM: {} bytes of pixels, and {} x {} x {} are {}",
                                        text.size(), height, width, stored, pixels * stored));
  }
  const auto* in = reinterpret_cast<const uint8_t*>(text.data());
  uint8_t* out = image.pixels.data();
  for (size_t i = 0; i < pixels; ++i, in += stored, out += channels) {
    const uint8_t red = in[0], green = in[colored ? 1 : 0], blue = in[colored ? 2 : 0];
    if (channels == 3) {
      out[0] = blue, out[1] = green, out[2] = red;
    } else {
      out[0] = colored ? gray_of(blue, green, red) : red;
    }
  }
  return image;
}

}  // namespace cafetiere
