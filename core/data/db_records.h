// SPDX-License-Identifier: Apache-2.0
// DbRecords: the records of a database as the shards of a layer read them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/data/db.h"
#include "core/data/order.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// Records in key order, begun again at the end; with data_param's shuffle every epoch has an order of its
/// own. Row j of shard s at sub-step q is record ((q * batch + j) * shards + s) modulo the number of
/// records: sequential reading with one shard, the rule of Caffe's multi-GPU solver with more.
class DbRecords {
 public:
  /// Opens what a data_param names; it must have records, and a batch_size.
  static Result<DbRecords> open(const caffe::DataParameter& param, const std::string& layer,
                                int shards, uint64_t seed, const Logger& log);

  int64_t count() const { return count_; }
  int shards() const { return int(readers_.size()); }
  const std::string& path() const { return path_; }
  /// The cursor of a shard on a row of its batch; the shard's next call moves it.
  Result<const DbCursor*> at(int shard, int64_t sub_step, int64_t row, int64_t batch);
  /// The cursor of shard 0 on the first record.
  Result<const DbCursor*> first() { return seek(readers_[0], 0); }
  /// A cursor of its own, on the first record.
  Result<std::unique_ptr<DbCursor>> all() const;
  /// "record "K" of "PATH"", for messages.
  std::string where(std::string_view key) const;

 private:
  struct Reader {
    std::unique_ptr<DbCursor> cursor;
    int64_t position = 0;
    EpochOrder order;
  };
  DbRecords() = default;
  Status read_keys();
  Result<const DbCursor*> seek(Reader& reader, int64_t record);

  std::string path_;
  int64_t count_ = 0;
  std::vector<std::string> keys_;  // of a shuffled database, in their order
  std::unique_ptr<DbReader> db_;
  std::vector<Reader> readers_;  // by shard, after db_: cursors go first
};

}  // namespace cafetiere
