// SPDX-License-Identifier: Apache-2.0
#include "core/data/db_source.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/philox.h"

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
  layer_ = layer.name(), path_ = param.source();
  if (layer.top_size() < 1 || layer.top_size() > 2) {
    return invalid_argument(
        fmt::format("it has {} tops, but takes 1 (data) or 2 (data, label)", layer.top_size()));
  }
  if (path_.empty()) return invalid_argument("data_param has no source; set it to the database");
  if (param.batch_size() < 1) {
    return invalid_argument("data_param has no batch_size; set it to 1 or more");
  }
  const bool lmdb = param.backend() == caffe::DataParameter::LMDB;
  CFT_ASSIGN(db_, open_db(path_, lmdb ? DbBackend::kLmdb : DbBackend::kLevelDb));
  log.info("Opened {} {}", db_backend_name(lmdb ? DbBackend::kLmdb : DbBackend::kLevelDb), path_);
  records_ = db_->records();
  if (records_ == 0) {
    return invalid_argument(fmt::format("the database \"{}\" has no records", path_));
  }
  readers_.resize(static_cast<size_t>(shards));
  if (param.shuffle()) {
    log.info("Shuffling data");
    CFT_TRY(read_keys());
    for (Reader& reader : readers_) {
      reader.order = EpochOrder(records_, true, Philox::key(seed, "data " + layer_));
    }
  }
  color_ = datum_color(layer.transform_param());
  Reader& first = readers_[0];
  CFT_TRY(seek(first, 0));
  CFT_TRY(parse(first));
  if (color_ != ImageColor::kStored && !first.datum.encoded()) {
    log.warning("layer \"{}\": force_color and force_gray act on encoded images only", layer_);
  }
  CFT_ASSIGN(batch_,
             ImageBatch::make(layer, param.batch_size(), first.pixels.shape, train, seed, log));
  return {};
}

Status DbSource::fill(int shard, int64_t sub_step, std::span<float* const> tops) {
  Reader& reader = readers_[static_cast<size_t>(shard)];
  const auto shards = static_cast<int64_t>(readers_.size());
  const int64_t rows = batch_->rows();
  for (int64_t j = 0; j < rows; ++j) {
    const int64_t at = sequence_position(sub_step, j, rows, shard, shards);
    const int64_t record =
        keys_.empty() ? at % records_ : reader.order.at(at / records_, at % records_);
    const Status status = read(reader, record);
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

Status DbSource::read_keys() {
  CFT_ASSIGN(const std::unique_ptr<DbCursor> all, db_->cursor());
  CFT_TRY(all->first());
  while (all->valid()) {
    keys_.emplace_back(all->key());
    CFT_TRY(all->next());
  }
  records_ = static_cast<int64_t>(keys_.size());
  return {};
}

Status DbSource::seek(Reader& reader, int64_t record) {
  if (!reader.cursor) {
    CFT_ASSIGN(reader.cursor, db_->cursor());
    CFT_TRY(reader.cursor->first());
  }
  if (!keys_.empty()) {
    CFT_TRY(reader.cursor->seek(keys_[static_cast<size_t>(record)]));
    reader.position = record;
  }
  if (record < reader.position) {
    CFT_TRY(reader.cursor->first());
    reader.position = 0;
  }
  for (; reader.position < record && reader.cursor->valid(); ++reader.position) {
    CFT_TRY(reader.cursor->next());
  }
  if (reader.cursor->valid()) return {};
  return io_error(fmt::format(
      "the database \"{}\" ended after {} records, but had {} when it was opened; do not write to "
      "it while it is read",
      path_, reader.position, records_));
}

Status DbSource::parse(Reader& reader) const {
  const std::string_view value = reader.cursor->value();
  if (!reader.datum.ParseFromArray(value.data(), static_cast<int>(value.size()))) {
    return invalid_argument(where(reader.cursor->key()) +
                            ": its value is not a Datum; rebuild the database");
  }
  Result<DatumPixels> pixels = datum_pixels(reader.datum, color_, reader.planes);
  if (!pixels.ok()) return pixels.status().with_context(where(reader.cursor->key()));
  reader.pixels = *std::move(pixels);
  return {};
}

Status DbSource::read(Reader& reader, int64_t record) {
  CFT_TRY(seek(reader, record));
  CFT_TRY(parse(reader));
  const Shape &shape = reader.pixels.shape, &first = batch_->first();
  const bool fits =
      reader.pixels.floats.empty() ? batch_->transformer().accepts(shape) : shape == first;
  if (fits) return {};
  return invalid_argument(fmt::format(
      "{}: its image is {} x {} x {}, but the first record's is {} x {} x {}; resize all images "
      "alike, or set crop_size",
      where(reader.cursor->key()), shape[0], shape[1], shape[2], first[0], first[1], first[2]));
}

std::string DbSource::where(std::string_view key) const {
  return fmt::format("record \"{}\" of \"{}\"", key, path_);
}

}  // namespace cafetiere
