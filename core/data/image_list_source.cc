// SPDX-License-Identifier: Apache-2.0
#include "core/data/image_list_source.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/philox.h"

namespace cafetiere {

Result<std::unique_ptr<ImageListSource>> ImageListSource::make(const caffe::LayerParameter& layer,
                                                               bool train, int shards,
                                                               uint64_t seed, const Logger& log) {
  std::unique_ptr<ImageListSource> source(new ImageListSource());
  const Status status = source->open(layer, train, shards, seed, log);
  if (status.ok()) return source;
  return status.with_context(fmt::format("layer \"{}\" (ImageData)", layer.name()));
}

Status ImageListSource::check(const caffe::LayerParameter& layer) const {
  if (layer.top_size() != 2) {
    return invalid_argument(
        fmt::format("it has {} tops, but takes 2 (data, label)", layer.top_size()));
  }
  const caffe::ImageDataParameter& param = layer.image_data_param();
  if (source_.empty()) {
    return invalid_argument("image_data_param has no source; set it to a list of \"path label\"");
  }
  if (param.batch_size() < 1) {
    return invalid_argument("image_data_param: set batch_size to 1 or more");
  }
  if ((param.new_height() == 0) != (param.new_width() == 0)) {
    return invalid_argument("image_data_param: give both new_height and new_width, or none");
  }
  if (int64_t{param.new_height()} * param.new_width() > kMaxImagePixels) {
    return invalid_argument(
        fmt::format("image_data_param: new_height {} and new_width {} are more than {} pixels",
                    param.new_height(), param.new_width(), kMaxImagePixels));
  }
  return {};
}

Status ImageListSource::open(const caffe::LayerParameter& layer, bool train, int shards,
                             uint64_t seed, const Logger& log) {
  const caffe::ImageDataParameter& param = layer.image_data_param();
  layer_ = layer.name(), source_ = param.source(), root_ = param.root_folder();
  CFT_TRY(check(layer));
  height_ = static_cast<int>(param.new_height()), width_ = static_cast<int>(param.new_width());
  color_ = param.is_color() ? ImageColor::kColor : ImageColor::kGray;
  log.info("Opening file {}", source_);
  CFT_ASSIGN(entries_, read_image_list(source_));
  const uint64_t key = Philox::key(seed, "image list");
  if (param.shuffle()) log.info("Shuffling data");
  for (int shard = 0; shard < shards; ++shard) {  // one order, shared by all shards' epochs
    readers_.push_back({{static_cast<int64_t>(entries_.size()), param.shuffle(), key}, {}});
  }
  log.info("A total of {} images.", entries_.size());
  const uint64_t skip_key = Philox::key(seed, "image list skip");
  CFT_ASSIGN(skip_, draw_skip(param.rand_skip(), skip_key, entries_.size(), log));
  CFT_ASSIGN(const Image first, load(entries_[0]));
  CFT_ASSIGN(batch_, ImageBatch::make(layer, param.batch_size(), first.shape(), train, seed, log));
  return {};
}

Status ImageListSource::fill(int shard, int64_t sub_step, std::span<float* const> tops) {
  Reader& reader = readers_[static_cast<size_t>(shard)];
  const auto shards = static_cast<int64_t>(readers_.size());
  const auto count = static_cast<int64_t>(entries_.size());
  for (int64_t j = 0; j < batch_->rows(); ++j) {
    const int64_t at = skip_ + sequence_position(sub_step, j, batch_->rows(), shard, shards);
    const auto index = static_cast<size_t>(reader.order.at(at / count, at % count));
    const ImageEntry& entry = entries_[index];
    CFT_TRY(fill_row(reader, entry, {sub_step, shard, j}, batch_->row(tops[0], j))
                .with_context(fmt::format("layer \"{}\" (ImageData)", layer_)));
    tops[1][j] = static_cast<float>(entry.label);
  }
  return {};
}

Status ImageListSource::fill_row(Reader& reader, const ImageEntry& entry,
                                 const RowPosition& position, float* out) const {
  CFT_ASSIGN(const Image image, load(entry));
  if (!batch_->transformer().accepts(image.shape())) {
    const Shape& first = batch_->first();
    return invalid_argument(fmt::format(
        "{}: the image is {} x {} x {}, but the first one is {} x {} x {}; set new_height and "
        "new_width, or crop_size",
        where(entry), image.channels, image.height, image.width, first[0], first[1], first[2]));
  }
  reader.planes.resize(image.pixels.size());
  to_planes(image, reader.planes.data());
  batch_->transformer().apply(reader.planes, image.shape(), position, out);
  return {};
}

Result<Image> ImageListSource::load(const ImageEntry& entry) const {
  Result<Image> image = read_image(root_ + entry.path, color_);
  if (!image.ok()) {
    return image.status().with_context(where(entry) + ": Could not load " + entry.path);
  }
  if (height_ == 0) return image;
  return resize_image(*image, height_, width_);
}

std::string ImageListSource::where(const ImageEntry& entry) const {
  return fmt::format("{}:{}", source_, entry.line);
}

}  // namespace cafetiere
