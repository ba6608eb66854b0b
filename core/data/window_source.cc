// SPDX-License-Identifier: Apache-2.0
#include "core/data/window_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/philox.h"
#include "core/data/mean_file.h"
#include "core/data/window_crop.h"
#include "core/model/file.h"

namespace cafetiere {

Result<std::unique_ptr<WindowSource>> WindowSource::make(const caffe::LayerParameter& layer, int,
                                                         uint64_t seed, const Logger& log) {
  std::unique_ptr<WindowSource> source(new WindowSource());
  const Status status = source->open(layer, seed, log);
  if (status.ok()) return source;
  return status.with_context(fmt::format("layer \"{}\" (WindowData)", layer.name()));
}

Status WindowSource::check(const caffe::LayerParameter& layer) const {
  const caffe::WindowDataParameter& param = layer.window_data_param();
  if (layer.top_size() != 2) {
    return invalid_argument(
        fmt::format("it has {} tops, but takes 2 (data, label)", layer.top_size()));
  }
  if (source_.empty()) return invalid_argument("window_data_param has no source; name a file");
  if (batch_ < 1) return invalid_argument("window_data_param: set batch_size to 1 or more");
  constexpr uint32_t kLargestCrop = 1 << 13;
  const uint32_t crop = layer.transform_param().crop_size();
  if (crop < 1 || crop > kLargestCrop) {
    return invalid_argument(
        fmt::format("transform_param: crop_size is {}, but windows are warped "
                    "to it; set it from 1 to {}",
                    crop, kLargestCrop));
  }
  if (2 * uint64_t{param.context_pad()} >= crop) {
    return invalid_argument(
        fmt::format("window_data_param: context_pad {} must be less than half of crop_size {}",
                    param.context_pad(), crop));
  }
  if (param.crop_mode() != "warp" && param.crop_mode() != "square") {
    return invalid_argument(fmt::format(
        "window_data_param: crop_mode is \"{}\"; use \"warp\" or \"square\"", param.crop_mode()));
  }
  if (!(param.fg_fraction() >= 0 && param.fg_fraction() <= 1)) {
    return invalid_argument("window_data_param: fg_fraction must be from 0 to 1");
  }
  return {};
}

Status WindowSource::open(const caffe::LayerParameter& layer, uint64_t seed, const Logger& log) {
  const caffe::WindowDataParameter& param = layer.window_data_param();
  layer_ = layer.name(), source_ = param.source(), root_ = param.root_folder();
  batch_ = param.batch_size();
  CFT_TRY(check(layer));
  crop_ = static_cast<int>(layer.transform_param().crop_size());
  mirror_ = layer.transform_param().mirror();
  pad_ = static_cast<int>(param.context_pad());
  square_ = param.crop_mode() == "square";
  scale_ = param.scale();
  foreground_rows_ = static_cast<int64_t>(static_cast<float>(batch_) * param.fg_fraction());
  key_ = Philox::key(seed, "windows");
  CFT_ASSIGN(list_, read_window_list(source_));
  channels_ = list_.images[0].channels;
  if (channels_ != 1 && channels_ != 3) {
    return invalid_argument(
        fmt::format("{}: images of {} channels; use 1 (gray) or 3 (colour)", source_, channels_));
  }
  for (const WindowImage& image : list_.images) {
    if (image.channels == channels_) continue;
    return invalid_argument(fmt::format("{}: {} has {} channels, but the first image has {}",
                                        source_, image.path, image.channels, channels_));
  }
  CFT_TRY(divide(param));
  CFT_TRY(set_mean(layer.transform_param()));
  for (size_t i = 0; param.cache_images() && i < list_.images.size(); ++i) {
    CFT_ASSIGN(cached_.emplace_back(), read_file(root_ + list_.images[i].path));
  }
  log.info("Number of images: {}", list_.images.size());
  log.info("Number of foreground and background windows: {}, {}", foreground_.size(),
           background_.size());
  log.info("output data size: {},{},{},{}", batch_, channels_, crop_, crop_);
  return {};
}

Status WindowSource::divide(const caffe::WindowDataParameter& param) {
  for (size_t i = 0; i < list_.windows.size(); ++i) {
    Window& window = list_.windows[i];
    if (window.overlap >= param.fg_threshold()) {
      if (window.label < 1) {
        return invalid_argument(where(window) +
                                ": a window with an object needs a label above 0, which is the "
                                "background's");
      }
      foreground_.push_back(static_cast<int>(i));
    } else if (window.overlap < param.bg_threshold()) {
      window.label = 0;
      background_.push_back(static_cast<int>(i));
    }
  }
  const bool lacks_objects = foreground_.empty() && foreground_rows_ > 0;
  if (!lacks_objects && (!background_.empty() || foreground_rows_ == batch_)) return {};
  return invalid_argument(fmt::format(
      "{}: no window has an overlap {}; change fg_threshold, bg_threshold or fg_fraction", source_,
      lacks_objects ? fmt::format("of at least {} (fg_threshold)", param.fg_threshold())
                    : fmt::format("below {} (bg_threshold)", param.bg_threshold())));
}

Status WindowSource::set_mean(const caffe::TransformationParameter& param) {
  const std::span<const float> means(param.mean_value().data(), size_t(param.mean_value_size()));
  CFT_ASSIGN(mean_.values, channel_means(means, param.has_mean_file(), channels_));
  if (!param.has_mean_file()) return {};
  CFT_ASSIGN(MeanImage image, read_mean_image(param.mean_file()));
  // As in Caffe, the width determines the crop's offset along both axes.
  const int64_t offset = (image.shape[2] - crop_) / 2;
  if (image.shape[0] != channels_ || image.shape[2] < crop_ || image.shape[1] < crop_ + offset) {
    return invalid_argument(fmt::format(
        "transform_param: mean_file {} holds {}, but windows have {} channels and {} x {} pixels, "
        "which begin at row and column {} of the mean; make it square",
        param.mean_file(), image.shape.str(), channels_, crop_, crop_,
        std::max<int64_t>(0, offset)));
  }
  mean_.height = image.shape[1], mean_.width = image.shape[2], mean_.offset = offset;
  mean_.values = std::move(image.values);
  return {};
}

float WindowSource::Mean::at(int64_t c, int64_t y, int64_t x) const {
  if (width == 0) return values[static_cast<size_t>(c)];
  return values[static_cast<size_t>((c * height + y + offset) * width + x + offset)];
}

std::vector<Shape> WindowSource::top_shapes() const {
  return {Shape{batch_, channels_, crop_, crop_}, Shape{batch_}};
}

Status WindowSource::fill(int shard, int64_t sub_step, std::span<float* const> tops) {
  const int64_t size = channels_ * crop_ * crop_;
  for (int64_t j = 0; j < batch_; ++j) {
    const std::vector<int>& from = j < batch_ - foreground_rows_ ? background_ : foreground_;
    const auto words =
        Philox::block(key_, {static_cast<uint32_t>(sub_step), static_cast<uint32_t>(sub_step >> 32),
                             static_cast<uint32_t>(shard), static_cast<uint32_t>(j)});
    const int index = from[Philox::below(words[0], static_cast<uint32_t>(from.size()))];
    const Window& window = list_.windows[static_cast<size_t>(index)];
    CFT_TRY(fill_row(window, mirror_ && words[1] >> 31 == 1, tops[0] + j * size)
                .with_context(fmt::format("layer \"{}\" (WindowData)", layer_)));
    tops[1][j] = static_cast<float>(window.label);
  }
  return {};
}

Result<Image> WindowSource::load(int image) const {
  const auto index = static_cast<size_t>(image);
  const ImageColor color = color_for_channels(channels_);
  return cached_.empty() ? read_image(root_ + list_.images[index].path, color)
                         : decode_image(cached_[index], color);
}

Status WindowSource::fill_row(const Window& window, bool mirrored, float* out) const {
  const Result<Image> image = load(window.image);
  if (!image.ok()) return image.status().with_context(where(window));
  const auto crop =
      crop_window(window, image->height, image->width, {crop_, pad_, square_, mirrored});
  if (!crop.ok()) return crop.status().with_context(where(window));
  const Image part = cut_out(*image, *crop, mirrored);
  std::fill_n(out, channels_ * crop_ * crop_, 0.f);
  const uint8_t* pixel = part.pixels.data();
  for (int64_t y = crop->top; y < crop->top + part.height; ++y) {
    for (int64_t x = crop->left; x < crop->left + part.width; ++x) {
      for (int64_t c = 0; c < channels_; ++c) {
        out[(c * crop_ + y) * crop_ + x] =
            (static_cast<float>(*pixel++) - mean_.at(c, y, x)) * scale_;
      }
    }
  }
  return {};
}

std::string WindowSource::where(const Window& window) const {
  return fmt::format("{}:{}, image {}", source_, window.line,
                     list_.images[static_cast<size_t>(window.image)].path);
}

}  // namespace cafetiere
