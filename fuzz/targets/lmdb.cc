// SPDX-License-Identifier: Apache-2.0
// An LMDB file: all of its records, and what they are as images; a range of its keys.
#include <memory>
#include <vector>

#include "core/data/datum.h"
#include "core/data/lmdb_cursor.h"
#include "fuzz/targets.h"

namespace {

/// A file whose bytes come in copies, each no larger than what was asked for.
class CopiedFile : public cafetiere::ByteFile {
 public:
  explicit CopiedFile(std::string_view bytes) : bytes_(bytes) {}
  uint64_t size() const override { return bytes_.size(); }
  cafetiere::Result<std::string_view> read(uint64_t offset, uint64_t bytes,
                                           std::string* buffer) const override {
    if (offset > bytes_.size() || bytes > bytes_.size() - offset) __builtin_trap();
    buffer->assign(bytes_, offset, bytes);
    buffer->shrink_to_fit();  // for the sanitizer to see the end
    return std::string_view(*buffer);
  }

 private:
  std::string_view bytes_;
};

}  // namespace

void cafetiere::fuzz::lmdb(std::string_view bytes) {
  const auto tree = LmdbTree::open(std::make_shared<CopiedFile>(bytes), "file");
  if (!tree.ok()) return;
  LmdbCursor cursor(*tree);
  std::vector<uint8_t> planes;
  for (Status at = cursor.first(); at.ok() && cursor.valid(); at = cursor.next()) {
    caffe::Datum record;
    const std::string_view value = cursor.value();
    if (record.ParseFromArray(value.data(), static_cast<int>(value.size()))) {
      (void)datum_pixels(record, ImageColor::kStored, planes);
    }
  }
  const auto keys = tree->split(3);
  if (!keys.ok() || keys->empty()) return;
  LmdbCursor range(*tree, {keys->front(), keys->back()});
  for (Status at = range.first(); at.ok() && range.valid(); at = range.next()) {
  }
}
