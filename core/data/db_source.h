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
#include "core/data/db.h"
#include "core/data/image_batch.h"
#include "core/data/order.h"
#include "core/data/source.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// Reads records in key order and wraps at the end; no record is dropped at a tail, so rows() is
/// always the batch size. Row j of shard s at sub-step q is record ((q * batch + j) * shards + s)
/// modulo the number of records: sequential reading with one shard, the rule of Caffe's multi-GPU
/// solver with more. With data_param's shuffle every epoch has the records in an order of its own. Encoded images are decoded. All images must have the shape of the first
/// record's, unless a crop makes them equal.
class DbSource : public Source {
 public:
  /// `layer`: a Data layer with one top (images) or two (images, labels). `train` decides where
  /// transforms crop.
  static Result<std::unique_ptr<DbSource>> make(const caffe::LayerParameter& layer, bool train,
                                                int shards, uint64_t seed, const Logger& log = {});

  std::vector<Shape> top_shapes() const override { return batch_->top_shapes(); }
  int64_t rows(int, int64_t) const override { return batch_->rows(); }
  Status fill(int shard, int64_t sub_step, std::span<float* const> tops) override;

  int64_t records() const { return records_; }

 private:
  /// A shard's reader; its Datum is reused, so that its bytes are not allocated for each record.
  struct Reader {
    std::unique_ptr<DbCursor> cursor;
    int64_t position = 0;
    EpochOrder order;
    caffe::Datum datum;
    std::vector<uint8_t> planes;  ///< of an encoded image
    DatumPixels pixels;           ///< in one of the two above
  };
  DbSource() = default;
  Status open(const caffe::LayerParameter& layer, bool train, int shards, uint64_t seed,
              const Logger& log);
  Status read_keys();
  Status seek(Reader& reader, int64_t record);
  /// Reads the record under the cursor.
  Status parse(Reader& reader) const;
  Status read(Reader& reader, int64_t record);
  std::string where(std::string_view key) const;

  std::string layer_, path_;
  int64_t records_ = 0;
  std::vector<std::string> keys_;  ///< of a shuffled source, in their order
  ImageColor color_ = ImageColor::kStored;
  std::optional<ImageBatch> batch_;  // none until the first record was read
  std::unique_ptr<DbReader> db_;
  std::vector<Reader> readers_;  // by shard, after db_: cursors go first
};

}  // namespace cafetiere
