// SPDX-License-Identifier: Apache-2.0
#include "core/data/transformer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/philox.h"
#include "core/data/draws.h"
#include "core/data/mean_file.h"

namespace cafetiere {
namespace {

/// out[i] = (pixels[i] - mean(i)) * scale for a run of pixels.
template <class T, class Mean>
void copy_run(const std::byte* pixels, int64_t count, Mean mean, float scale,
              float* __restrict out) {
  for (int64_t i = 0; i < count; ++i) {
    T pixel;
    std::memcpy(&pixel, pixels + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    out[i] = (static_cast<float>(pixel) - mean(i)) * scale;
  }
}

/// The same in reverse order, through a buffer that stays in the cache, so that both loops
/// vectorise.
template <class T, class Mean>
void mirror_run(const std::byte* pixels, int64_t count, Mean mean, float scale,
                float* __restrict out) {
  std::array<float, 256> piece;
  for (int64_t first = 0; first < count; first += int64_t(piece.size())) {
    const int64_t length = std::min(int64_t(piece.size()), count - first);
    copy_run<T>(
        pixels + first * static_cast<int64_t>(sizeof(T)), length,
        [&](int64_t i) { return mean(first + i); }, scale, piece.data());
    float* const to = out + count - first - length;
    for (int64_t i = 0; i < length; ++i) to[i] = piece[size_t(length - 1 - i)];
  }
}

/// Rejects fields of forks that would change the image.
Status refuse_forks(const caffe::TransformationParameter& p) {
  const std::pair<bool, const char*> kFields[] = {
      {p.has_resize_param(), "resize_param"},
      {p.has_noise_param(), "noise_param"},
      {p.has_distort_param(), "distort_param"},
      {p.has_expand_param(), "expand_param"},
      {p.has_emit_constraint(), "emit_constraint"},
      {p.has_crop_h() || p.has_crop_w(), "crop_h and crop_w"},
      {p.has_crop_height() || p.has_crop_width(), "crop_height and crop_width"},
      {p.scale_factors_size() > 0, "scale_factors"},
  };
  for (const auto& [given, name] : kFields) {
    if (!given) continue;
    return invalid_argument(
        fmt::format("transform_param: {} of SSD and DeepLab is not available; prepare the images "
                    "before they are "
                    "stored, or use crop_size and mirror",
                    name));
  }
  return {};
}

}  // namespace

Result<Transformer> Transformer::make(const caffe::TransformationParameter& param, bool train,
                                      const Shape& image, uint64_t seed, const MeanImage* mean) {
  Transformer t;
  CFT_TRY(refuse_forks(param));
  if (param.force_color() && param.force_gray()) {
    return invalid_argument("transform_param: force_color and force_gray are both set; keep one");
  }
  t.mirror_ = param.mirror();
  t.cropped_ = param.crop_size() > 0;
  t.random_crop_ = train && t.cropped_;
  t.scale_ = param.scale();
  t.key_ = Philox::key(seed, "transformer");
  CFT_ASSIGN(t.random_size_, RandomSize::make(param));
  CFT_TRY(t.set_image(param, image));
  CFT_TRY(t.set_mean(param, mean));
  return t;
}

Status Transformer::set_image(const caffe::TransformationParameter& param, const Shape& image) {
  out_shape_ = image;
  if (image.axes() != 3) {
    if (param.crop_size() > 0 || param.mirror() || param.has_mean_file()) {
      return invalid_argument(fmt::format(
          "transform_param: crop_size, mirror and mean_file need images (channels, height, width), "
          "but the shape of a row is {}",
          image.str()));
    }
    width_ = out_width_ = image.count();
    return {};
  }
  channels_ = image[0], height_ = out_height_ = image[1], width_ = out_width_ = image[2];
  const int64_t crop = param.crop_size();
  if (crop == 0) return {};
  if (random_size_ && (channels_ > 4 || !random_size_->accepts(height_, width_))) {
    return invalid_argument(
        fmt::format("transform_param: images of {} cannot be given a random size for crop_size {}",
                    image.str(), crop));
  }
  if (!random_size_ && (crop > height_ || crop > width_)) {
    return invalid_argument(fmt::format(
        "transform_param: crop_size {} does not fit into images of {} x {} pixels; make it smaller",
        crop, height_, width_));
  }
  out_height_ = out_width_ = crop;
  out_shape_ = Shape{channels_, crop, crop};
  return {};
}

Status Transformer::set_mean(const caffe::TransformationParameter& param, const MeanImage* given) {
  const std::span<const float> means(param.mean_value().data(), size_t(param.mean_value_size()));
  CFT_ASSIGN(channel_means_, channel_means(means, param.has_mean_file(), channels_));
  return param.has_mean_file() ? load_mean(param.mean_file(), given) : Status();
}

Status Transformer::load_mean(const std::string& path, const MeanImage* given) {
  Result<MeanImage> mean = given ? *given : read_mean_image(path);
  if (!mean.ok()) return mean.status().with_context("transform_param: mean_file");
  if (mean->shape != Shape{channels_, height_, width_}) {
    return invalid_argument(fmt::format(
        "transform_param: mean_file {} holds {} x {} x {}, but the images before cropping are "
        "{} x {} x {}; compute the mean from the same data",
        path, mean->shape[0], mean->shape[1], mean->shape[2], channels_, height_, width_));
  }
  mean_image_ = std::move(mean->values);
  return {};
}

bool Transformer::accepts(const Shape& image) const {
  if (image.axes() != 3 || out_shape_.axes() != 3 || image[0] != channels_) return false;
  if (random_size_) return random_size_->accepts(image[1], image[2]);
  if (image[1] == height_ && image[2] == width_) return true;
  return cropped_ && mean_image_.empty() && image[1] >= out_height_ && image[2] >= out_width_;
}

Transformer::Window Transformer::choose_window(int64_t height, int64_t width,
                                               const RowPosition& position) const {
  Window window{(height - out_height_) / 2, (width - out_width_) / 2, false};
  if (!random_crop_ && !mirror_) return window;
  const auto words = Philox::block(
      key_,
      {static_cast<uint32_t>(position.sub_step), static_cast<uint32_t>(position.sub_step >> 32),
       static_cast<uint32_t>(position.shard), static_cast<uint32_t>(position.row)});
  window.mirrored = mirror_ && words[0] >> 31 == 1;
  if (random_crop_) {
    window.top = Philox::below(words[1], static_cast<uint32_t>(height - out_height_ + 1));
    window.left = Philox::below(words[2], static_cast<uint32_t>(width - out_width_ + 1));
  }
  return window;
}

template <class T>
void Transformer::transform(const std::byte* pixels, int64_t height, int64_t width,
                            const RowPosition& position, float* out) const {
  const Window window = choose_window(height, width, position);
  // Rows that are contiguous in memory are processed as one run.
  const bool whole_rows = out_width_ == width && !window.mirrored;
  const int64_t runs = whole_rows ? 1 : out_height_;
  const int64_t length = whole_rows ? out_height_ * out_width_ : out_width_;
  for (int64_t c = 0; c < channels_; ++c) {
    const float value = channel_means_[static_cast<size_t>(c)];
    for (int64_t run = 0; run < runs; ++run, out += length) {
      const int64_t at = (c * height + window.top + run) * width + window.left;
      const std::byte* from = pixels + at * static_cast<int64_t>(sizeof(T));
      const float* image = mean_image_.empty() ? nullptr : mean_image_.data() + at;
      const auto flat = [value](int64_t) { return value; };
      const auto planar = [image](int64_t i) { return image[i]; };
      if (window.mirrored) {
        image ? mirror_run<T>(from, length, planar, scale_, out)
              : mirror_run<T>(from, length, flat, scale_, out);
      } else {
        image ? copy_run<T>(from, length, planar, scale_, out)
              : copy_run<T>(from, length, flat, scale_, out);
      }
    }
  }
}

void Transformer::apply(std::span<const uint8_t> pixels, const RowPosition& position,
                        float* out) const {
  if (random_size_) return apply(pixels, Shape{channels_, height_, width_}, position, out);
  transform<uint8_t>(std::as_bytes(pixels).data(), height_, width_, position, out);
}

void Transformer::apply(std::span<const uint8_t> pixels, const Shape& image,
                        const RowPosition& position, float* out) const {
  if (!random_size_) {
    transform<uint8_t>(std::as_bytes(pixels).data(), image[1], image[2], position, out);
    return;
  }
  Draws draws(Philox::key(key_, "size"), position);
  const Image sized = random_size_->apply(from_planes(pixels.data(), image), draws);
  std::vector<uint8_t> planes(sized.pixels.size());
  to_planes(sized, planes.data());
  transform<uint8_t>(std::as_bytes(std::span(planes)).data(), sized.height, sized.width, position,
                     out);
}

void Transformer::apply_floats(std::span<const std::byte> pixels, const RowPosition& position,
                               float* out) const {
  transform<float>(pixels.data(), height_, width_, position, out);
}

}  // namespace cafetiere
