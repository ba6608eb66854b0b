// SPDX-License-Identifier: Apache-2.0
// DbRecords: the order in which the shards of a layer read the records of a database.
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

/// Records in key order, wrapping around at the end; with data_param's shuffle, in a different
/// order in each epoch. Row j of shard s at sub-step q is record ((q * batch + j) * shards + s)
/// modulo the number of records: sequential with one shard, the rule of Caffe's multi-GPU solver
/// with more.
class DbRecords {
 public:
  /// Opens the database of a data_param; it must have records, and the data_param a batch_size.
  static Result<DbRecords> open(const caffe::DataParameter& param, const std::string& layer,
                                int shards, uint64_t seed, const Logger& log);

  int64_t count() const { return count_; }
  int shards() const { return int(readers_.size()); }
  const std::string& path() const { return path_; }
  /// A shard's cursor, on a row of its batch; valid until the next call for the shard.
  Result<const DbCursor*> at(int shard, int64_t sub_step, int64_t row, int64_t batch);
  /// The cursor of shard 0, on the first record.
  Result<const DbCursor*> first() { return seek(readers_[0], 0); }
  /// A separate cursor, on the first record.
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
  std::vector<std::string> keys_;  // of a shuffled database, in key order
  std::unique_ptr<DbReader> db_;
  std::vector<Reader> readers_;  // per shard; declared after db_ so that cursors are destroyed
                                 // first
};

}  // namespace cafetiere
