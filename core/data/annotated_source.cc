// SPDX-License-Identifier: Apache-2.0
#include "core/data/annotated_source.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <cmath>

#include "core/data/datum.h"
#include "core/data/image_distort.h"

namespace cafetiere {
namespace {

constexpr int64_t kObjectColumns = 8;  // per row of the second top

float share(int pixels, int side) { return float(pixels) / float(side); }

/// The number of objects of a record, without reading its image.
Result<int64_t> objects_in(std::string_view record) {
  using google::protobuf::internal::WireFormatLite;
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(record.data()),
                                            int(record.size()));
  constexpr uint32_t kGroup =
      WireFormatLite::MakeTag(caffe::AnnotatedDatum::kAnnotationGroupFieldNumber,
                              WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  int64_t objects = 0;
  while (const uint32_t tag = in.ReadTag()) {
    if (tag != kGroup) {
      if (!WireFormatLite::SkipField(&in, tag)) return invalid_argument("it is cut short");
      continue;
    }
    uint32_t size = 0;
    if (!in.ReadVarint32(&size)) return invalid_argument("it is cut short");
    const std::string_view rest = record.substr(size_t(in.CurrentPosition()));
    caffe::AnnotationGroup group;
    if (size > rest.size() || !group.ParseFromArray(rest.data(), int(size)) ||
        !in.Skip(int(size))) {
      return invalid_argument("its objects cannot be read");
    }
    objects += group.annotation_size();
  }
  if (!in.ConsumedEntireMessage()) return invalid_argument("it is cut short");
  return objects;
}

bool is_noisy(const caffe::NoiseParameter& p) {
  return p.hist_eq() || p.inverse() || p.decolorize() || p.gauss_blur() || p.jpeg() >= 0 ||
         p.posterize() || p.erode() || p.saltpepper() || p.clahe() || p.convert_to_hsv() ||
         p.convert_to_lab();
}

}  // namespace

Result<std::unique_ptr<AnnotatedSource>> AnnotatedSource::make(const caffe::LayerParameter& layer,
                                                               bool train, int shards,
                                                               uint64_t seed, const Logger& log) {
  std::unique_ptr<AnnotatedSource> source(new AnnotatedSource());
  const Status status = source->open(layer, train, shards, seed, log);
  if (status.ok()) return source;
  return status.with_context(fmt::format("layer \"{}\" (AnnotatedData)", layer.name()));
}

Status AnnotatedSource::check() const {
  const caffe::TransformationParameter& t = transform_;
  if (t.has_noise_param() && is_noisy(t.noise_param())) {
    return invalid_argument("transform_param: noise_param is not available; remove it");
  }
  if (t.scale_factors_size() > 0 || t.has_random_resize_param() ||
      t.has_random_aspect_ratio_param()) {
    return invalid_argument(
        "transform_param: scale_factors, random_resize_param and random_aspect_ratio_param know "
        "nothing of boxes; remove them");
  }
  if (t.has_distort_param()) CFT_TRY(check_distortion(t.distort_param()));
  if (!(t.expand_param().max_expand_ratio() >= 1 && t.expand_param().max_expand_ratio() <= 16)) {
    return invalid_argument("expand_param: max_expand_ratio must be in [1, 16]");
  }
  if ((crop_height_ == 0) != (crop_width_ == 0)) {
    return invalid_argument("transform_param: give both crop_h and crop_w, or none");
  }
  for (const caffe::BatchSampler& sampler : annotated_.batch_sampler()) {
    CFT_TRY(check_sampler(sampler));
  }
  return {};
}

Status AnnotatedSource::open(const caffe::LayerParameter& layer, bool train, int shards,
                             uint64_t seed, const Logger& log) {
  layer_ = layer.name(), transform_ = layer.transform_param();
  annotated_ = layer.annotated_data_param();
  train_ = train, labels_ = layer.top_size() > 1;
  const caffe::TransformationParameter& t = transform_;
  crop_height_ = t.crop_h() > 0 ? t.crop_h() : t.crop_size();
  crop_width_ = t.crop_w() > 0 ? t.crop_w() : t.crop_size();
  key_ = Philox::key(seed, "annotated");
  CFT_TRY(check());
  CFT_ASSIGN(records_, DbRecords::open(layer.data_param(), layer_, shards, seed, log));
  batch_ = layer.data_param().batch_size();
  if (t.has_resize_param()) {
    CFT_ASSIGN(resizer_, Resizer::make(t.resize_param()));
  }
  CFT_ASSIGN(const DbCursor* first, records_->first());
  CFT_ASSIGN(const Row row, parse(*first));
  const int64_t h = resizer_ ? resizer_->height() : row.image.height;
  const int64_t w = resizer_ ? resizer_->width() : row.image.width;
  if (crop_height_ > h || crop_width_ > w) {
    return invalid_argument(
        fmt::format("transform_param: a crop of {} x {} does not fit into images of {} x {} pixels",
                    crop_height_, crop_width_, h, w));
  }
  shape_ = Shape{row.image.channels, crop_height_ > 0 ? crop_height_ : h,
                 crop_width_ > 0 ? crop_width_ : w};
  caffe::TransformationParameter plain;
  plain.set_scale(t.scale());
  if (t.has_mean_file()) plain.set_mean_file(t.mean_file());
  *plain.mutable_mean_value() = t.mean_value();
  CFT_ASSIGN(pixels_, Transformer::make(plain, train, shape_, seed));
  if (labels_) CFT_TRY(count_objects());
  log.info("output data size: {},{},{},{}", batch_, shape_[0], shape_[1], shape_[2]);
  return {};
}

Status AnnotatedSource::count_objects() {
  CFT_ASSIGN(const std::unique_ptr<DbCursor> cursor, records_->all());
  while (cursor->valid()) {
    const Result<int64_t> objects = objects_in(cursor->value());
    if (!objects.ok()) return objects.status().with_context(records_->where(cursor->key()));
    room_ = std::max(room_, *objects);
    CFT_TRY(cursor->next());
  }
  return {};
}

std::vector<Shape> AnnotatedSource::top_shapes() const {
  std::vector<Shape> shapes = {Shape{batch_, shape_[0], shape_[1], shape_[2]}};
  if (labels_) shapes.push_back(Shape{1, 1, batch_ * room_, kObjectColumns});
  return shapes;
}

Result<AnnotatedSource::Row> AnnotatedSource::parse(const DbCursor& cursor) const {
  const std::string_view value = cursor.value();
  const auto where = [&] { return records_->where(cursor.key()); };
  caffe::AnnotatedDatum record;
  if (!record.ParseFromArray(value.data(), int(value.size())) || !record.has_datum()) {
    return invalid_argument(where() +
                            ": its value is no AnnotatedDatum; a database of plain Datum records "
                            "is read by type: \"Data\"");
  }
  Row row;
  std::vector<uint8_t> planes;
  if (record.datum().encoded()) {
    Result<Image> image = decode_image(record.datum().data(), datum_color(transform_));
    if (!image.ok()) return image.status().with_context(where() + ": its encoded image");
    row.image = *std::move(image);
  } else {
    const Result<DatumPixels> pixels = datum_pixels(record.datum(), ImageColor::kStored, planes);
    if (!pixels.ok()) return pixels.status().with_context(where());
    if (!pixels->floats.empty()) {
      return invalid_argument(where() + ": its image is of floats; store bytes or encoded images");
    }
    row.image = from_planes(pixels->bytes.data(), pixels->shape);
  }
  Result<std::vector<AnnotatedBox>> objects = boxes_of(record);
  if (!objects.ok()) return objects.status().with_context(where());
  row.objects = *std::move(objects);
  return row;
}

Status AnnotatedSource::fill(int shard, int64_t sub_step, std::span<float* const> tops) {
  std::vector<float> labels;
  for (int64_t j = 0; j < batch_; ++j) {
    CFT_TRY(fill_row(shard, sub_step, j, tops[0] + j * shape_.count(), &labels)
                .with_context(fmt::format("layer \"{}\" (AnnotatedData)", layer_)));
  }
  if (!labels_) return {};
  const int64_t all = batch_ * room_ * kObjectColumns, used = std::min(all, int64_t(labels.size()));
  std::copy_n(labels.data(), used, tops[1]);
  std::fill(tops[1] + used, tops[1] + all, -1.F);
  return {};
}

Status AnnotatedSource::fill_row(int shard, int64_t sub_step, int64_t j, float* image,
                                 std::vector<float>* labels) {
  CFT_ASSIGN(const DbCursor* cursor, records_->at(shard, sub_step, j, batch_));
  CFT_ASSIGN(Row row, parse(*cursor));
  const RowPosition position{sub_step, shard, j};
  Draws draws(key_, position);
  CFT_TRY(change(draws, &row).with_context(records_->where(cursor->key())));
  std::vector<uint8_t> planes(row.image.pixels.size());
  to_planes(row.image, planes.data());
  pixels_->apply(planes, position, image);
  for (const AnnotatedBox& o : row.objects) {
    labels->insert(labels->end(), {float(j), float(o.label), float(o.instance), o.box.x1, o.box.y1,
                                   o.box.x2, o.box.y2, o.difficult ? 1.F : 0.F});
  }
  return {};
}

Status AnnotatedSource::change(Draws& draws, Row* row) const {
  const caffe::TransformationParameter& t = transform_;
  if (t.has_distort_param()) distort(t.distort_param(), draws, &row->image);
  if (t.has_expand_param()) expand(draws, row);
  if (annotated_.batch_sampler_size() > 0) {
    std::vector<Box> crops;
    for (const caffe::BatchSampler& sampler : annotated_.batch_sampler()) {
      sample(sampler, row->objects, draws, &crops);
    }
    if (!crops.empty()) crop_to(crops[draws.below(uint32_t(crops.size()))], row);
  }
  if (resizer_) {
    std::vector<Box> boxes;
    for (const AnnotatedBox& o : row->objects) boxes.push_back(o.box);
    row->image = resizer_->apply(row->image, draws, &boxes);
    for (size_t i = 0; i < boxes.size(); ++i) row->objects[i].box = boxes[i];
  }
  return crop_and_mirror(draws, row);
}

/// Places the image at a random position on a larger canvas filled with the mean colour.
void AnnotatedSource::expand(Draws& draws, Row* row) const {
  const caffe::ExpansionParameter& p = transform_.expand_param();
  const bool on = draws.chance(p.prob());
  const float ratio = draws.between(1, p.max_expand_ratio());
  const float down = draws.unit(), right = draws.unit();
  const Image& image = row->image;
  const int h = int(float(image.height) * ratio), w = int(float(image.width) * ratio);
  if (!on || int64_t{h} * w > kMaxImagePixels) return;
  const int top = int(down * float(h - image.height)), left = int(right * float(w - image.width));
  Image canvas{h, w, image.channels, {}};
  std::vector<uint8_t> colour;
  for (int c = 0; c < image.channels; ++c) {
    const int given = transform_.mean_value_size();
    const float mean = given == 0 ? 0 : transform_.mean_value(std::min(c, given - 1));
    colour.push_back(uint8_t(std::clamp(std::nearbyintf(mean), 0.F, 255.F)));
  }
  const auto channels = size_t(image.channels);
  canvas.pixels.resize(size_t(h) * size_t(w) * channels);
  for (size_t i = 0; i < canvas.pixels.size(); ++i) canvas.pixels[i] = colour[i % channels];
  const size_t line = size_t(image.width) * channels;
  for (size_t y = 0; y < size_t(image.height); ++y) {
    const size_t to = ((size_t(top) + y) * size_t(w) + size_t(left)) * channels;
    std::copy_n(image.pixels.data() + y * line, line, canvas.pixels.data() + to);
  }
  // The canvas in coordinates relative to the image.
  const Box around{-share(left, image.width), -share(top, image.height),
                   share(w - left, image.width), share(h - top, image.height)};
  row->objects = project(row->objects, around, transform_.emit_constraint());
  row->image = std::move(canvas);
}

/// Crops to whole pixels of the image; the objects are projected accordingly.
void AnnotatedSource::crop_to(const Box& part, Row* row) const {
  const int h = row->image.height, w = row->image.width;
  const int top = std::min(int(part.y1 * float(h)), h - 1);
  const int left = std::min(int(part.x1 * float(w)), w - 1);
  const int height = std::clamp(int(part.height() * float(h)), 1, h - top);
  const int width = std::clamp(int(part.width() * float(w)), 1, w - left);
  const Box pixels{float(left) / float(w), float(top) / float(h), float(left + width) / float(w),
                   float(top + height) / float(h)};
  row->objects = project(row->objects, pixels, transform_.emit_constraint());
  row->image = part_of(row->image, top, left, height, width);
}

Status AnnotatedSource::crop_and_mirror(Draws& draws, Row* row) const {
  const float down = draws.unit(), right = draws.unit();
  const bool mirrored = draws.chance(0.5F) && transform_.mirror();
  const int h = int(shape_[1]), w = int(shape_[2]);
  const Image& image = row->image;
  const bool fits =
      image.channels == shape_[0] && (crop_height_ > 0 ? image.height >= h && image.width >= w
                                                       : image.height == h && image.width == w);
  if (!fits) {
    return invalid_argument(
        fmt::format("its image is {} x {} x {}, but the top takes {} x {} x {}; set resize_param, "
                    "and force_color or force_gray",
                    image.channels, image.height, image.width, shape_[0], h, w));
  }
  if (image.height != h || image.width != w) {
    const int rows = image.height - h, columns = image.width - w;
    const int top = train_ ? int(down * float(rows + 1)) : rows / 2;
    const int left = train_ ? int(right * float(columns + 1)) : columns / 2;
    const Box part{share(left, image.width), share(top, image.height), share(left + w, image.width),
                   share(top + h, image.height)};
    row->objects = project(row->objects, part, transform_.emit_constraint());
    row->image = part_of(image, std::min(top, rows), std::min(left, columns), h, w);
  }
  if (!mirrored) return {};
  mirror(&row->image);
  for (AnnotatedBox& o : row->objects) {
    o.box = {1 - o.box.x2, o.box.y1, 1 - o.box.x1, o.box.y2};
  }
  return {};
}

}  // namespace cafetiere
