// SPDX-License-Identifier: Apache-2.0
#include "core/data/db.h"

#include <fmt/format.h>
#include <leveldb/db.h>
#include <leveldb/dumpfile.h>
#include <leveldb/env.h>
#include <leveldb/write_batch.h>

#include <charconv>
#include <filesystem>
#include <string>
#include <utility>

namespace cafetiere {
namespace {

Status leveldb_error(const std::string& path, std::string_view what, const leveldb::Status& why) {
  return io_error(fmt::format("LevelDB \"{}\": {}: {}", path, what, why.ToString()));
}

leveldb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }
std::string_view view(const leveldb::Slice& s) { return {s.data(), s.size()}; }

/// Caffe's settings.
leveldb::Options options() {
  leveldb::Options options;
  options.block_size = 65536;
  options.write_buffer_size = size_t{256} << 20;
  options.max_open_files = 100;
  return options;
}

/// For a single sequential read: verifies checksums and does not fill the block cache.
leveldb::ReadOptions sequential() {
  leveldb::ReadOptions options;
  options.verify_checksums = true;
  options.fill_cache = false;
  return options;
}

/// A file in memory.
class Text : public leveldb::WritableFile {
 public:
  leveldb::Status Append(const leveldb::Slice& more) override {
    text.append(more.data(), more.size());
    return {};
  }
  leveldb::Status Close() override { return {}; }
  leveldb::Status Flush() override { return {}; }
  leveldb::Status Sync() override { return {}; }

  std::string text;
};

/// The number after the last `name` in the text of a manifest; 0 if there is none.
uint64_t last_number(const std::string& manifest, const std::string& name) {
  const size_t at = manifest.rfind("\n  " + name + ": ");
  if (at == std::string::npos) return 0;
  uint64_t number = 0;
  const char* const from = manifest.data() + at + name.size() + 5;
  std::from_chars(from, manifest.data() + manifest.size(), number);
  return number;
}

/// LevelDB aborts on an assertion if a manifest's log number is beyond its next file number. Other
/// errors, including unreadable files, are reported when it is opened.
Status check_manifest(const std::string& path) {
  leveldb::Env* const env = leveldb::Env::Default();
  std::string current;
  if (!leveldb::ReadFileToString(env, path + "/CURRENT", &current).ok()) return {};
  Text manifest;
  const std::string file = path + "/" + current.substr(0, current.find('\n'));
  if (!leveldb::DumpFile(env, file, &manifest).ok()) return {};
  const uint64_t log = last_number(manifest.text, "LogNumber");
  const uint64_t next = last_number(manifest.text, "NextFile");
  if (log <= next) return {};
  return leveldb_error(path, "cannot open it",
                       leveldb::Status::Corruption(fmt::format(
                           "its manifest has log {}, but the next file is {}", log, next)));
}

class LevelDbCursor : public DbCursor {
 public:
  LevelDbCursor(std::string path, leveldb::Iterator* it) : path_(std::move(path)), it_(it) {}
  Status first() override {
    it_->SeekToFirst();
    return check();
  }
  Status seek(std::string_view key) override {
    it_->Seek(slice(key));
    return check();
  }
  Status next() override {
    it_->Next();
    return check();
  }
  bool valid() const override { return it_->Valid(); }
  std::string_view key() const override { return view(it_->key()); }
  std::string_view value() const override { return view(it_->value()); }

 private:
  Status check() const {
    return it_->status().ok() ? Status() : leveldb_error(path_, "cannot read", it_->status());
  }
  std::string path_;
  std::unique_ptr<leveldb::Iterator> it_;
};

class LevelDbReader : public DbReader {
 public:
  LevelDbReader(std::string path, leveldb::DB* db) : path_(std::move(path)), db_(db) {}
  int64_t records() const override { return records_; }
  Result<std::unique_ptr<DbCursor>> cursor() override {
    return std::unique_ptr<DbCursor>(new LevelDbCursor(path_, db_->NewIterator(sequential())));
  }
  Status count() {
    CFT_ASSIGN(const auto all, cursor());
    CFT_TRY(all->first());
    for (; all->valid(); ++records_) CFT_TRY(all->next());
    return {};
  }

 private:
  std::string path_;
  std::unique_ptr<leveldb::DB> db_;
  int64_t records_ = 0;
};

class LevelDbWriter : public DbWriter {
 public:
  LevelDbWriter(std::string path, leveldb::DB* db) : path_(std::move(path)), db_(db) {}
  void put(std::string_view key, std::string_view value) override {
    batch_.Put(slice(key), slice(value));
  }
  Status commit() override {
    const leveldb::Status status = db_->Write({}, &batch_);
    if (!status.ok()) return leveldb_error(path_, "cannot write", status);
    batch_.Clear();
    return {};
  }

 private:
  std::string path_;
  std::unique_ptr<leveldb::DB> db_;
  leveldb::WriteBatch batch_;
};

}  // namespace

Result<std::unique_ptr<DbReader>> open_leveldb(const std::string& path, bool counted) {
  std::error_code unseen;
  if (!std::filesystem::exists(std::filesystem::path(path) / "CURRENT", unseen)) {
    // LevelDB would create the folder.
    return leveldb_error(path, "cannot open it",
                         leveldb::Status::NotFound("it has no file CURRENT"));
  }
  CFT_TRY(check_manifest(path));
  leveldb::DB* db = nullptr;
  const leveldb::Status status = leveldb::DB::Open(options(), path, &db);
  if (!status.ok()) {
    return leveldb_error(path, "cannot open it (one reader at a time; LMDB allows any number)",
                         status);
  }
  auto reader = std::make_unique<LevelDbReader>(path, db);
  if (counted) CFT_TRY(reader->count());
  return std::unique_ptr<DbReader>(std::move(reader));
}

Result<std::unique_ptr<DbWriter>> create_leveldb(const std::string& path) {
  leveldb::Options create = options();
  create.create_if_missing = true;
  create.error_if_exists = true;
  leveldb::DB* db = nullptr;
  const leveldb::Status status = leveldb::DB::Open(create, path, &db);
  if (!status.ok()) return leveldb_error(path, "cannot create it", status);
  return std::unique_ptr<DbWriter>(new LevelDbWriter(path, db));
}

}  // namespace cafetiere
