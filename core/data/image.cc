// SPDX-License-Identifier: Apache-2.0
#include "core/data/image.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <type_traits>

#include "core/data/image_codecs.h"
#include "core/model/file.h"

namespace cafetiere {
namespace {

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

ImageColor color_for_channels(int64_t channels) {
  if (channels == 1) return ImageColor::kGray;
  return channels == 3 ? ImageColor::kColor : ImageColor::kStored;
}

std::string_view image_format(std::span<const uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("\xff\xd8\xff")) return "JPEG";
  if (text.starts_with("\x89PNG\r\n\x1a\n")) return "PNG";
  if (text.starts_with("RIFF") && text.substr(0, 12).ends_with("WEBP")) return "WebP";
  return "";
}

Result<Image> decode_image(std::span<const uint8_t> bytes, ImageColor color) {
  const std::string_view format = image_format(bytes);
  if (format == "JPEG") return decode_jpeg(bytes, color);
  if (format == "PNG") return decode_png(bytes, color);
  if (format == "WebP") return decode_webp(bytes, color);
  return invalid_argument(fmt::format(
      "these {} bytes are not a JPEG, PNG or WebP image; convert other formats", bytes.size()));
}

Result<Image> decode_image(std::string_view bytes, ImageColor color) {
  return decode_image(bytes_of(bytes), color);
}

Result<Image> read_image(const std::string& path, ImageColor color) {
  CFT_ASSIGN(const std::string bytes, read_file(path));
  Result<Image> image = decode_image(bytes, color);
  if (!image.ok()) return image.status().with_context(path);
  return image;
}

Result<std::string> encode_image(const Image& image, std::string_view format) {
  if (format == "png") return encode_png(image);
  constexpr int kQuality = 95;
  if (format == "jpg" || format == "jpeg") return encode_jpeg(image, kQuality);
  return invalid_argument(
      fmt::format("images cannot be encoded as \"{}\"; use jpg, jpeg or png", format));
}

Result<Image> new_image(int64_t height, int64_t width, int channels) {
  if (height < 1 || width < 1 || height > kMaxImagePixels / width) {
    return invalid_argument(fmt::format("the image has {} x {} pixels; 1 to {} are supported",
                                        height, width, kMaxImagePixels));
  }
  return Image{static_cast<int>(height), static_cast<int>(width), channels,
               std::vector<uint8_t>(static_cast<size_t>(height * width * channels))};
}

namespace {

/// `Channels` is a constant where that lets the compiler vectorise.
template <class Channels>
void split(const uint8_t* __restrict pixels, size_t count, Channels channels,
           uint8_t* __restrict planes) {
  for (size_t i = 0; i < count; ++i) {
    for (size_t c = 0; c < channels; ++c) planes[c * count + i] = pixels[i * channels + c];
  }
}

}  // namespace

Image from_planes(const uint8_t* planes, const Shape& shape) {
  const int64_t channels = shape[0], plane = shape[1] * shape[2];
  Image image{int(shape[1]), int(shape[2]), int(channels),
              std::vector<uint8_t>(size_t(channels * plane))};
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t i = 0; i < plane; ++i) {
      image.pixels[size_t(i * channels + c)] = planes[c * plane + i];
    }
  }
  return image;
}

void to_planes(const Image& image, uint8_t* planes) {
  const auto channels = static_cast<size_t>(std::max(image.channels, 1));
  const size_t count = image.pixels.size() / channels;
  if (channels == 3) {
    split(image.pixels.data(), count, std::integral_constant<size_t, 3>(), planes);
  } else {
    split(image.pixels.data(), count, channels, planes);
  }
}

}  // namespace cafetiere
