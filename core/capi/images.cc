// SPDX-License-Identifier: Apache-2.0
// The part of the C interface that turns image files into what nets read.
#include <fmt/format.h>

#include <map>
#include <utility>

#include "core/capi/boundary.h"
#include "core/capi/options.h"
#include "core/data/image.h"
#include "core/data/transformer.h"
#include "core/model/parse_text.h"

struct cft_transformer {
  caffe::TransformationParameter param;
  bool train = false;
  uint64_t seed = 1;
  std::map<std::vector<int64_t>, cafetiere::Transformer> by_shape;  // of the images so far
};

namespace cafetiere::capi {
namespace {

Result<ImageColor> color_of(std::string_view name) {
  if (name == "stored") return ImageColor::kStored;
  if (name == "color") return ImageColor::kColor;
  if (name == "gray") return ImageColor::kGray;
  return invalid_argument(fmt::format("color is '{}': set it to stored, color or gray", name));
}

/// A caller's pixels as an image.
Result<Image> given_image(const void* pixels, uint64_t bytes, int32_t height, int32_t width,
                          int32_t channels) {
  if (height < 1 || width < 1 || channels < 1 || channels > 4 ||
      int64_t{height} * width > kMaxImagePixels) {
    return invalid_argument(fmt::format("there is no image of {} x {} pixels with {} channels",
                                        height, width, channels));
  }
  if (bytes != uint64_t(height) * uint64_t(width) * uint64_t(channels)) {
    return invalid_argument(fmt::format("{} bytes are no image of {} x {} pixels with {} channels",
                                        bytes, height, width, channels));
  }
  CFT_ASSIGN(const auto given, given_bytes(pixels, bytes, "pixels"));
  const auto* begin = reinterpret_cast<const uint8_t*>(given.data());
  return Image{height, width, channels, {begin, begin + given.size()}};
}

Status give_pixels(const Image& image, void** out) {
  return give_bytes({reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size()}, out,
                    nullptr);
}

Status create(const char* text, cft_transformer** out) {
  CFT_ASSIGN(Options o, Options::parse(text));
  const std::string param = o.text("param"), phase = o.text("phase", "TEST");
  auto made = std::make_unique<cft_transformer>();
  made->seed = uint64_t(o.number("seed", 1, 0, INT64_MAX));
  CFT_TRY(o.done());
  if (phase != "TRAIN" && phase != "TEST") return invalid_argument("phase must be TRAIN or TEST");
  made->train = phase == "TRAIN";
  CFT_TRY(parse_text(param, "transform_param", &made->param));
  *out = made.release();
  return {};
}

Status run(cft_transformer* t, const Image& image, int64_t number, std::span<float> out) {
  const std::vector<int64_t> shape{image.channels, image.height, image.width};
  auto known = t->by_shape.find(shape);
  if (known == t->by_shape.end()) {
    CFT_ASSIGN(Transformer made, Transformer::make(t->param, t->train, Shape(shape), t->seed));
    known = t->by_shape.emplace(shape, std::move(made)).first;
  }
  const Transformer& transformer = known->second;
  if (int64_t(out.size()) != transformer.out_shape().count()) {
    return invalid_argument(fmt::format("an image becomes {} = {} floats, and there is room for {}",
                                        transformer.out_shape().str(),
                                        transformer.out_shape().count(), out.size()));
  }
  std::vector<uint8_t> planes(image.pixels.size());
  to_planes(image, planes.data());
  transformer.apply(planes, {.row = number}, out.data());
  return {};
}

}  // namespace
}  // namespace cafetiere::capi

using cafetiere::Status;
namespace capi = cafetiere::capi;

int cft_image_decode(const void* file, uint64_t bytes, const char* color, int32_t* height,
                     int32_t* width, int32_t* channels, void** pixels) {
  CFT_NOT_NULL(color, height, width, channels, pixels);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const auto given, capi::given_bytes(file, bytes, "file"));
    CFT_ASSIGN(const cafetiere::ImageColor wanted, capi::color_of(color));
    CFT_ASSIGN(const cafetiere::Image image, cafetiere::decode_image(capi::text_of(given), wanted));
    CFT_TRY(capi::give_pixels(image, pixels));
    *height = image.height;
    *width = image.width;
    *channels = image.channels;
    return {};
  });
}

int cft_image_resize(const void* pixels, uint64_t bytes, int32_t height, int32_t width,
                     int32_t channels, int32_t to_height, int32_t to_width, void** out) {
  CFT_NOT_NULL(out);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const cafetiere::Image image,
               capi::given_image(pixels, bytes, height, width, channels));
    if (to_height < 1 || to_width < 1 ||
        int64_t{to_height} * to_width > cafetiere::kMaxImagePixels) {
      return cafetiere::invalid_argument(
          fmt::format("an image cannot become {} x {} pixels", to_height, to_width));
    }
    return capi::give_pixels(cafetiere::resize_image(image, to_height, to_width), out);
  });
}

int cft_transformer_create(const char* options, cft_transformer** out) {
  CFT_NOT_NULL(out);
  return capi::guarded([&] { return capi::create(options, out); });
}

int cft_transformer_run(cft_transformer* transformer, const void* pixels, uint64_t bytes,
                        int32_t height, int32_t width, int32_t channels, int64_t number, float* out,
                        uint64_t floats) {
  CFT_NOT_NULL(transformer, out);
  return capi::guarded([&]() -> Status {
    CFT_ASSIGN(const cafetiere::Image image,
               capi::given_image(pixels, bytes, height, width, channels));
    return capi::run(transformer, image, number, {out, size_t(floats)});
  });
}

void cft_transformer_destroy(cft_transformer* transformer) { delete transformer; }
