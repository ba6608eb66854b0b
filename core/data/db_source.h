// SPDX-License-Identifier: Apache-2.0
// DbSource: the batches of Caffe's Data layer, from an LMDB or LevelDB of Datum records.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/data/datum.h"
#include "core/data/db_records.h"
#include "core/data/image_batch.h"
#include "core/data/source.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// Reads records in the order of DbRecords; batches are always full, so rows() is always the batch
/// size. Encoded images are decoded. All images must have the shape of the first record's, unless a
/// crop makes them equal.
class DbSource : public Source {
 public:
  /// `layer`: a Data layer with one top (images) or two (images, labels). `train` decides where
  /// transforms crop.
  static Result<std::unique_ptr<DbSource>> make(const caffe::LayerParameter& layer, bool train,
                                                int shards, uint64_t seed, const Logger& log = {});

  std::vector<Shape> top_shapes() const override { return batch_->top_shapes(); }
  int64_t rows(int, int64_t) const override { return batch_->rows(); }
  Status fill(int shard, int64_t sub_step, std::span<float* const> tops) override;

  int64_t records() const { return records_->count(); }

 private:
  /// A shard's current record; the Datum is reused to avoid allocations per record.
  struct Reader {
    caffe::Datum datum;
    std::vector<uint8_t> planes;  ///< of an encoded image
    DatumPixels pixels;           ///< points into one of the two above
  };
  DbSource() = default;
  Status open(const caffe::LayerParameter& layer, bool train, int shards, uint64_t seed,
              const Logger& log);
  Status read(int shard, int64_t sub_step, int64_t row);
  /// Reads the record at the cursor.
  Status parse(const DbCursor& cursor, Reader& reader) const;
  Status check_shape(const DbCursor& cursor, const Reader& reader) const;

  std::string layer_;
  ImageColor color_ = ImageColor::kStored;
  std::optional<ImageBatch> batch_;   // empty until the first record has been read
  std::optional<DbRecords> records_;  // empty until opened
  std::vector<Reader> readers_;       // per shard
};

}  // namespace cafetiere
