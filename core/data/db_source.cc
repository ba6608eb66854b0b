// SPDX-License-Identifier: Apache-2.0
#include "core/data/db_source.h"

#include <fmt/format.h>

#include <utility>

namespace cafetiere {

Result<std::unique_ptr<DbSource>> DbSource::make(const caffe::LayerParameter& layer, bool train,
                                                 int shards, uint64_t seed, const Logger& log) {
  std::unique_ptr<DbSource> source(new DbSource());
  const Status status = source->open(layer, train, shards, seed, log);
  if (!status.ok()) return status.with_context(fmt::format("layer \"{}\" (Data)", layer.name()));
  return source;
}

Status DbSource::open(const caffe::LayerParameter& layer, bool train, int shards, uint64_t seed,
                      const Logger& log) {
  const caffe::DataParameter& param = layer.data_param();
  layer_ = layer.name();
  if (layer.top_size() < 1 || layer.top_size() > 2) {
    return invalid_argument(
        fmt::format("it has {} tops, but takes 1 (data) or 2 (data, label)", layer.top_size()));
  }
  CFT_ASSIGN(records_, DbRecords::open(param, layer_, shards, seed, log));
  readers_.resize(static_cast<size_t>(shards));
  color_ = datum_color(layer.transform_param());
  Reader& first = readers_[0];
  CFT_ASSIGN(const DbCursor* cursor, records_->first());
  CFT_TRY(parse(*cursor, first));
  if (color_ != ImageColor::kStored && !first.datum.encoded()) {
    log.warning("layer \"{}\": force_color and force_gray act on encoded images only", layer_);
  }
  CFT_ASSIGN(batch_,
             ImageBatch::make(layer, param.batch_size(), first.pixels.shape, train, seed, log));
  return {};
}

Status DbSource::fill(int shard, int64_t sub_step, std::span<float* const> tops) {
  Reader& reader = readers_[static_cast<size_t>(shard)];
  const int64_t rows = batch_->rows();
  for (int64_t j = 0; j < rows; ++j) {
    const Status status = read(shard, sub_step, j);
    if (!status.ok()) return status.with_context(fmt::format("layer \"{}\" (Data)", layer_));
    const RowPosition position{sub_step, shard, j};
    const auto& [shape, bytes, floats] = reader.pixels;
    float* out = batch_->row(tops[0], j);
    if (floats.empty()) {
      batch_->transformer().apply(bytes, shape, position, out);
    } else {
      batch_->transformer().apply_floats(std::as_bytes(floats), position, out);
    }
    if (batch_->labels()) tops[1][j] = static_cast<float>(reader.datum.label());
  }
  return {};
}

Status DbSource::read(int shard, int64_t sub_step, int64_t row) {
  Reader& reader = readers_[static_cast<size_t>(shard)];
  CFT_ASSIGN(const DbCursor* cursor, records_->at(shard, sub_step, row, batch_->rows()));
  CFT_TRY(parse(*cursor, reader));
  return check_shape(*cursor, reader);
}

Status DbSource::parse(const DbCursor& cursor, Reader& reader) const {
  const std::string_view value = cursor.value();
  const auto size = static_cast<int>(value.size());
  const auto where = [&] { return records_->where(cursor.key()); };
  if (!reader.datum.ParseFromArray(value.data(), size)) {
    return invalid_argument(where() + ": its value is not a Datum; rebuild the database");
  }
  Result<DatumPixels> pixels = datum_pixels(reader.datum, color_, reader.planes);
  if (!pixels.ok()) {
    caffe::AnnotatedDatum annotated;
    if (!reader.datum.has_channels() && annotated.ParseFromArray(value.data(), size) &&
        annotated.has_datum()) {
      return invalid_argument(where() +
                              ": its value is SSD's AnnotatedDatum; use type: \"AnnotatedData\"");
    }
    return pixels.status().with_context(where());
  }
  reader.pixels = *std::move(pixels);
  return {};
}

Status DbSource::check_shape(const DbCursor& cursor, const Reader& reader) const {
  const Shape &shape = reader.pixels.shape, &first = batch_->first();
  const bool fits =
      reader.pixels.floats.empty() ? batch_->transformer().accepts(shape) : shape == first;
  if (!reader.pixels.floats.empty() && batch_->transformer().resizes()) {
    return invalid_argument(records_->where(cursor.key()) +
                            ": its image is of floats, which get no random size; store bytes");
  }
  if (fits) return {};
  return invalid_argument(fmt::format(
      "{}: its image is {} x {} x {}, but the first record's is {} x {} x {}; resize all images "
      "alike, or set crop_size",
      records_->where(cursor.key()), shape[0], shape[1], shape[2], first[0], first[1], first[2]));
}

}  // namespace cafetiere
