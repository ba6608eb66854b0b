// SPDX-License-Identifier: Apache-2.0
#include "core/data/label_image_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/base/philox.h"
#include "core/data/mean_file.h"

namespace cafetiere {
namespace {

/// The first of two fields that is set.
int64_t either(uint32_t a, uint32_t b) { return a > 0 ? a : b; }

Result<LabelImageOptions> shared_options(const caffe::LayerParameter& layer) {
  const caffe::TransformationParameter& t = layer.transform_param();
  if (t.has_resize_param() || t.has_noise_param() || t.has_distort_param() ||
      t.has_expand_param() || t.has_emit_constraint() || t.has_random_resize_param() ||
      t.has_random_aspect_ratio_param()) {
    return invalid_argument(
        "transform_param: of SSD's fields and Intel's only crop_h and crop_w are available here; "
        "remove the others");
  }
  LabelImageOptions o;
  o.layer = layer.name(), o.type = layer.type();
  o.mean_file = t.mean_file();
  o.mirror = t.mirror();
  o.scale = t.scale();
  o.means.assign(t.mean_value().begin(), t.mean_value().end());
  o.crop_height = either(either(t.crop_height(), t.crop_h()), t.crop_size());
  o.crop_width = either(either(t.crop_width(), t.crop_w()), t.crop_size());
  return o;
}

template <class P>
void read_list_fields(const P& p, LabelImageOptions* o) {
  o->source = p.source(), o->root = p.root_folder();
  o->batch = p.batch_size(), o->rand_skip = p.rand_skip(), o->shuffle = p.shuffle();
  o->height = p.new_height(), o->width = p.new_width();
  o->color = p.is_color() ? ImageColor::kColor : ImageColor::kGray;
}

/// DenseImageData crops at random in both phases.
Result<LabelImageOptions> dense_options(const caffe::LayerParameter& layer) {
  const caffe::DenseImageDataParameter& p = layer.dense_image_data_param();
  CFT_ASSIGN(LabelImageOptions o, shared_options(layer));
  if (layer.transform_param().scale_factors_size() > 0) {
    return invalid_argument("transform_param: scale_factors are ImageSegData's; remove them");
  }
  read_list_fields(p, &o);
  if (p.has_mean_file()) o.mean_file = p.mean_file();
  o.mirror = o.mirror || p.mirror();
  if (p.crop_height() > 0) o.crop_height = p.crop_height();
  if (p.crop_width() > 0) o.crop_width = p.crop_width();
  o.random_crop = true;
  return o;
}

Result<LabelImageOptions> seg_options(const caffe::LayerParameter& layer, bool train) {
  using Labels = LabelImageOptions::Labels;
  const caffe::ImageDataParameter& p = layer.image_data_param();
  CFT_ASSIGN(LabelImageOptions o, shared_options(layer));
  read_list_fields(p, &o);
  if (!o.mean_file.empty()) {
    return invalid_argument("transform_param: ImageSegData takes mean_value, not mean_file");
  }
  o.labels = p.label_type() == caffe::ImageDataParameter::NONE    ? Labels::kNone
             : p.label_type() == caffe::ImageDataParameter::IMAGE ? Labels::kNumber
                                                                  : Labels::kImage;
  o.ignore = p.ignore_label();
  o.random_crop = train;
  o.pads = true;
  const auto& scales = layer.transform_param().scale_factors();
  o.scales.assign(scales.begin(), scales.end());
  return o;
}

/// Nearest-neighbour resizing, so that no new labels arise by interpolation.
Image resize_labels(const Image& image, int64_t height, int64_t width) {
  if (image.height == height && image.width == width) return image;
  Image out{int(height), int(width), 1, std::vector<uint8_t>(size_t(height * width))};
  for (int64_t y = 0; y < height; ++y) {
    const int64_t from = y * image.height / height * image.width;
    for (int64_t x = 0; x < width; ++x) {
      out.pixels[size_t(y * width + x)] = image.pixels[size_t(from + x * image.width / width)];
    }
  }
  return out;
}

/// A side times a factor, at least one pixel.
int64_t scaled(int side, float factor) {
  return std::max<int64_t>(1, std::lrint(double(side) * double(factor)));
}

}  // namespace

Result<std::unique_ptr<LabelImageSource>> LabelImageSource::make(const caffe::LayerParameter& layer,
                                                                 LabelImageForm form, bool train,
                                                                 int shards, uint64_t seed,
                                                                 const Logger& log) {
  const auto context = fmt::format("layer \"{}\" ({})", layer.name(), layer.type());
  Result<LabelImageOptions> options =
      form == LabelImageForm::kSeg ? seg_options(layer, train) : dense_options(layer);
  if (!options.ok()) return options.status().with_context(context);
  std::unique_ptr<LabelImageSource> source(new LabelImageSource(*std::move(options)));
  const Status status = source->open(shards, seed, log, size_t(layer.top_size()));
  if (status.ok()) return source;
  return status.with_context(context);
}

Status LabelImageSource::check() const {
  if (o_.source.empty()) {
    return invalid_argument("no source; set it to a list of images and their label images");
  }
  if (o_.batch < 1) return invalid_argument("set batch_size to 1 or more");
  if ((o_.height == 0) != (o_.width == 0)) {
    return invalid_argument("give both new_height and new_width, or none");
  }
  if ((o_.crop_height == 0) != (o_.crop_width == 0)) {
    return invalid_argument("give the crop's height and its width, or none");
  }
  if (o_.height * o_.width > kMaxImagePixels || o_.crop_height * o_.crop_width > kMaxImagePixels) {
    return invalid_argument(
        fmt::format("new_height {}, new_width {} or the crop {} x {} is more than {} pixels",
                    o_.height, o_.width, o_.crop_height, o_.crop_width, kMaxImagePixels));
  }
  for (const float s : o_.scales) {
    if (!(s > 0 && s <= 16)) {
      return invalid_argument(
          fmt::format("transform_param: scale_factors {} is not in (0, 16]", s));
    }
  }
  if (!o_.scales.empty() && o_.crop_height == 0) {
    return invalid_argument(
        "transform_param: scale_factors make images of several sizes; set crop_size, or "
        "crop_height and crop_width");
  }
  return {};
}

Status LabelImageSource::open(int shards, uint64_t seed, const Logger& log, size_t tops) {
  CFT_TRY(check());
  tops_ = tops;
  key_ = Philox::key(seed, "label images");
  log.info("Opening file {}", o_.source);
  const int words = o_.labels == LabelImageOptions::Labels::kNone ? 1 : 2;
  CFT_ASSIGN(entries_, read_pair_list(o_.source, words));
  if (o_.shuffle) log.info("Shuffling data");
  const uint64_t order = Philox::key(seed, "label image list");
  for (int s = 0; s < shards; ++s)
    orders_.emplace_back(int64_t(entries_.size()), o_.shuffle, order);
  log.info("A total of {} images.", entries_.size());
  const uint64_t skip_key = Philox::key(seed, "label image skip");
  CFT_ASSIGN(skip_, draw_skip(o_.rand_skip, skip_key, entries_.size(), log));
  CFT_ASSIGN(const Pair pair, load(entries_[0]));
  first_ = pair.image.shape();
  channels_ = first_[0];
  height_ = o_.crop_height > 0 ? o_.crop_height : first_[1];
  width_ = o_.crop_width > 0 ? o_.crop_width : first_[2];
  CFT_TRY(check_size(entries_[0], pair.image));
  CFT_TRY(set_means(first_));
  log.info("output data size: {},{},{},{}", o_.batch, channels_, height_, width_);
  return {};
}

Status LabelImageSource::set_means(const Shape& image) {
  CFT_ASSIGN(o_.means, channel_means(o_.means, !o_.mean_file.empty(), channels_));
  if (o_.mean_file.empty()) return {};
  Result<MeanImage> mean = read_mean_image(o_.mean_file);
  if (!mean.ok()) return mean.status().with_context("mean_file");
  if (mean->shape != image) {
    return invalid_argument(fmt::format(
        "mean_file {} holds {}, but the images before cropping are {}; compute the mean from the "
        "same data",
        o_.mean_file, mean->shape.str(), image.str()));
  }
  mean_image_ = std::move(mean->values);
  return {};
}

std::vector<Shape> LabelImageSource::top_shapes() const {
  std::vector<Shape> shapes = {Shape{o_.batch, channels_, height_, width_},
                               Shape{o_.batch, 1, height_, width_}};
  if (tops_ > 2) shapes.push_back(Shape{o_.batch, 1, 1, 2});
  return shapes;
}

Status LabelImageSource::fill(int shard, int64_t sub_step, std::span<float* const> tops) {
  const auto shards = int64_t(orders_.size()), count = int64_t(entries_.size());
  const int64_t pixels = height_ * width_;
  for (int64_t j = 0; j < o_.batch; ++j) {
    const int64_t at = skip_ + sequence_position(sub_step, j, o_.batch, shard, shards);
    const int64_t index = orders_[size_t(shard)].at(at / count, at % count);
    const PairEntry& entry = entries_[size_t(index)];
    const auto context = [&](const Status& s) {
      return s.with_context(fmt::format("layer \"{}\" ({})", o_.layer, o_.type));
    };
    Result<Pair> pair = load(entry);
    if (!pair.ok()) return context(pair.status());
    if (tops_ > 2) {
      tops[2][2 * j] = float(std::min<int64_t>(height_, pair->image.height));
      tops[2][2 * j + 1] = float(std::min<int64_t>(width_, pair->image.width));
    }
    const auto words = Philox::block(
        key_, {uint32_t(sub_step), uint32_t(sub_step >> 32), uint32_t(shard), uint32_t(j)});
    if (!o_.scales.empty()) {
      const float factor = o_.scales[Philox::below(words[3], uint32_t(o_.scales.size()))];
      const int64_t h = scaled(pair->image.height, factor), w = scaled(pair->image.width, factor);
      if (h * w > kMaxImagePixels) {
        return context(invalid_argument(fmt::format(
            "{}: {} x {} pixels times the scale factor {} are more than {}", where(entry),
            pair->image.height, pair->image.width, factor, kMaxImagePixels)));
      }
      pair->image = resize_image(pair->image, int(h), int(w));
      pair->label = resize_labels(pair->label, h, w);
    }
    if (const Status status = check_size(entry, pair->image); !status.ok()) return context(status);
    write(*pair, choose(pair->image, words), tops[0] + j * channels_ * pixels,
          tops[1] + j * pixels);
  }
  return {};
}

LabelImageSource::Part LabelImageSource::choose(const Image& image,
                                                const std::array<uint32_t, 4>& words) const {
  // An image smaller than the crop is padded at the end, so it begins at 0.
  const int64_t down = std::max<int64_t>(0, image.height - height_);
  const int64_t right = std::max<int64_t>(0, image.width - width_);
  Part part{down / 2, right / 2, o_.mirror && words[0] >> 31 == 1};
  if (o_.random_crop) {
    part.top = Philox::below(words[1], uint32_t(down + 1));
    part.left = Philox::below(words[2], uint32_t(right + 1));
  }
  return part;
}

void LabelImageSource::write(const Pair& pair, const Part& part, float* image, float* label) const {
  const Image& from = pair.image;
  const int64_t pixels = height_ * width_;
  for (int64_t y = 0; y < height_; ++y) {
    for (int64_t x = 0; x < width_; ++x) {
      const int64_t row = part.top + y, column = part.left + (part.mirrored ? width_ - 1 - x : x);
      const int64_t to = y * width_ + x;
      if (row >= from.height || column >= from.width) {  // padding is filled with the mean
        for (int64_t c = 0; c < channels_; ++c) image[c * pixels + to] = 0;
        label[to] = float(o_.ignore);
        continue;
      }
      const int64_t at = row * from.width + column;
      label[to] = float(pair.label.pixels[size_t(at)]);
      for (int64_t c = 0; c < channels_; ++c) {
        const auto pixel = float(from.pixels[size_t(at * channels_ + c)]);
        image[c * pixels + to] = (pixel - mean(c, row, column)) * o_.scale;
      }
    }
  }
}

float LabelImageSource::mean(int64_t c, int64_t y, int64_t x) const {
  if (mean_image_.empty()) return o_.means[size_t(c)];
  return mean_image_[size_t((c * first_[1] + y) * first_[2] + x)];
}

Result<LabelImageSource::Pair> LabelImageSource::load(const PairEntry& entry) const {
  Result<Image> image = read_image(o_.root + entry.image, o_.color);
  if (!image.ok()) {
    return image.status().with_context(where(entry) + ": Could not load " + entry.image);
  }
  CFT_ASSIGN(Image label, label_of(entry, *image));
  if (o_.height > 0) {
    *image = resize_image(*image, int(o_.height), int(o_.width));
    label = resize_labels(label, o_.height, o_.width);
  }
  return Pair{*std::move(image), std::move(label)};
}

Result<Image> LabelImageSource::label_of(const PairEntry& entry, const Image& image) const {
  using Labels = LabelImageOptions::Labels;
  Image label{image.height, image.width, 1, {}};
  int value = o_.ignore;
  if (o_.labels == Labels::kImage) {
    Result<Image> read = read_image(o_.root + entry.label, ImageColor::kGray);
    if (!read.ok()) {
      return read.status().with_context(where(entry) + ": Could not load " + entry.label);
    }
    if (read->height == image.height && read->width == image.width) return read;
    return invalid_argument(
        fmt::format("{}: the label image is {} x {} pixels, but its image {} x {}; make them equal",
                    where(entry), read->height, read->width, image.height, image.width));
  }
  if (o_.labels == Labels::kNumber) {
    const char* end = entry.label.data() + entry.label.size();
    const auto parsed = std::from_chars(entry.label.data(), end, value);
    if (parsed.ec != std::errc() || parsed.ptr != end) {
      return invalid_argument(
          fmt::format("{}: the label \"{}\" is no number; label_type: PIXEL takes label images",
                      where(entry), entry.label));
    }
  }
  if (value < 0 || value > 255) {
    return invalid_argument(
        fmt::format("{}: the label {} is not in [0, 255]", where(entry), value));
  }
  label.pixels.assign(size_t(image.height) * size_t(image.width), uint8_t(value));
  return label;
}

Status LabelImageSource::check_size(const PairEntry& entry, const Image& image) const {
  const bool equal = o_.crop_height > 0 || (image.height == first_[1] && image.width == first_[2]);
  if (!equal) {
    return invalid_argument(fmt::format(
        "{}: the image is {} x {} pixels, but the first one {} x {}; set new_height and new_width, "
        "or a crop",
        where(entry), image.height, image.width, first_[1], first_[2]));
  }
  if (o_.pads || (image.height >= height_ && image.width >= width_)) {
    if (mean_image_.empty() || (image.height == first_[1] && image.width == first_[2])) return {};
    return invalid_argument(fmt::format("{}: the image is {} x {} pixels, but mean_file {} x {}",
                                        where(entry), image.height, image.width, first_[1],
                                        first_[2]));
  }
  return invalid_argument(
      fmt::format("{}: the crop of {} x {} pixels does not fit into the image of {} x {}",
                  where(entry), height_, width_, image.height, image.width));
}

std::string LabelImageSource::where(const PairEntry& entry) const {
  return fmt::format("{}:{}", o_.source, entry.line);
}

}  // namespace cafetiere
