// SPDX-License-Identifier: Apache-2.0
#include "core/data/db_records.h"

#include <fmt/format.h>

#include "core/base/philox.h"

namespace cafetiere {

Result<DbRecords> DbRecords::open(const caffe::DataParameter& param, const std::string& layer,
                                  int shards, uint64_t seed, const Logger& log) {
  DbRecords r;
  r.path_ = param.source();
  if (r.path_.empty()) return invalid_argument("data_param has no source; set it to the database");
  if (param.batch_size() < 1) {
    return invalid_argument("data_param has no batch_size; set it to 1 or more");
  }
  const bool lmdb = param.backend() == caffe::DataParameter::LMDB;
  CFT_ASSIGN(r.db_, open_db(r.path_, lmdb ? DbBackend::kLmdb : DbBackend::kLevelDb));
  log.info("Opened {} {}", db_backend_name(lmdb ? DbBackend::kLmdb : DbBackend::kLevelDb), r.path_);
  r.count_ = r.db_->records();
  if (r.count_ == 0) {
    return invalid_argument(fmt::format("the database \"{}\" has no records", r.path_));
  }
  r.readers_.resize(size_t(shards));
  if (!param.shuffle()) return r;
  log.info("Shuffling data");
  CFT_TRY(r.read_keys());
  for (Reader& reader : r.readers_) {
    reader.order = EpochOrder(r.count_, true, Philox::key(seed, "data " + layer));
  }
  return r;
}

Result<std::unique_ptr<DbCursor>> DbRecords::all() const {
  CFT_ASSIGN(std::unique_ptr<DbCursor> cursor, db_->cursor());
  CFT_TRY(cursor->first());
  return cursor;
}

Status DbRecords::read_keys() {
  CFT_ASSIGN(const std::unique_ptr<DbCursor> cursor, all());
  while (cursor->valid()) {
    keys_.emplace_back(cursor->key());
    CFT_TRY(cursor->next());
  }
  count_ = int64_t(keys_.size());
  return {};
}

Result<const DbCursor*> DbRecords::at(int shard, int64_t sub_step, int64_t row, int64_t batch) {
  Reader& reader = readers_[size_t(shard)];
  const int64_t at = sequence_position(sub_step, row, batch, shard, shards());
  return seek(reader, keys_.empty() ? at % count_ : reader.order.at(at / count_, at % count_));
}

Result<const DbCursor*> DbRecords::seek(Reader& reader, int64_t record) {
  if (!reader.cursor) {
    CFT_ASSIGN(reader.cursor, all());
  }
  if (!keys_.empty()) {
    CFT_TRY(reader.cursor->seek(keys_[size_t(record)]));
    reader.position = record;
  }
  if (record < reader.position) {
    CFT_TRY(reader.cursor->first());
    reader.position = 0;
  }
  for (; reader.position < record && reader.cursor->valid(); ++reader.position) {
    CFT_TRY(reader.cursor->next());
  }
  if (reader.cursor->valid()) return reader.cursor.get();
  return io_error(fmt::format(
      "the database \"{}\" ended after {} records, but had {} when it was opened; do not write to "
      "it while it is read",
      path_, reader.position, count_));
}

std::string DbRecords::where(std::string_view key) const {
  return fmt::format("record \"{}\" of \"{}\"", key, path_);
}

}  // namespace cafetiere
