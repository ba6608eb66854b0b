// SPDX-License-Identifier: Apache-2.0
// The records of an LMDB file in key order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/db.h"
#include "core/data/lmdb_tree.h"

namespace cafetiere {

/// The keys k with from <= k < to in memcmp() order; a missing bound means unbounded.
struct KeyRange {
  std::optional<std::string> from, to;
};

/// Iterates over the records of a range; only pages on the path to the first record may be read
/// twice.
class LmdbCursor : public DbCursor {
 public:
  explicit LmdbCursor(LmdbTree tree, KeyRange range = {})
      : tree_(std::move(tree)), range_(std::move(range)) {}
  /// Whether to read the values of the records that follow; they are empty otherwise.
  void read_values(bool wanted) { values_ = wanted; }
  Status first() override;
  Status seek(std::string_view key) override;
  Status next() override;
  bool valid() const override { return valid_; }
  std::string_view key() const override { return key_; }
  std::string_view value() const override { return value_; }

 private:
  struct Place {
    LmdbPage page;
    size_t index = 0;  // of the node in the page
  };

  Status go_down(uint64_t number, const std::string* key);
  Result<size_t> index_of(const LmdbPage& page, std::string_view key) const;
  Status settle();
  Status read_record();

  LmdbTree tree_;
  KeyRange range_;
  std::vector<Place> path_;  // from the root to the leaf of the current record
  int64_t seen_ = 0;
  bool valid_ = false, values_ = true;
  std::string_view key_, value_;
  std::string buffer_;  // for a value on overflow pages
};

}  // namespace cafetiere
