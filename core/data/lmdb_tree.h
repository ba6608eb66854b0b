// SPDX-License-Identifier: Apache-2.0
// The records of an LMDB file, read without trusting the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/db.h"

namespace cafetiere {

/// Where the main database of an LMDB file is (data version 1, as 64-bit little-endian machines
/// write it). liblmdb follows the numbers of a file wherever they lead; here each is checked first.
struct LmdbTree {
  std::string_view file;  ///< all of its bytes
  std::string source;     ///< names the file in errors
  uint32_t page_bytes = 0;
  uint64_t root = 0;    ///< the number of the page at which all paths begin
  int depth = 0;        ///< pages on the way to a record; 0 when there are no records
  int64_t records = 0;  ///< as the file says, and no more than it has room for

  /// Reads the header. `file` must outlive the tree and its cursors.
  static Result<LmdbTree> open(std::string_view file, std::string source);
};

/// Goes through the records in key order. Keys and values are parts of the file.
class LmdbCursor : public DbCursor {
 public:
  explicit LmdbCursor(const LmdbTree& tree) : tree_(tree) {}
  Status first() override;
  Status next() override;
  bool valid() const override { return valid_; }
  std::string_view key() const override { return key_; }
  std::string_view value() const override { return value_; }

 private:
  struct Place {
    uint64_t number;        // of the page
    std::string_view page;  // its bytes
    size_t index = 0;       // of the node in it
    size_t nodes() const;
  };
  struct Node;

  Status go_down(uint64_t number);
  Status read_record();
  Result<Place> open_page(uint64_t number, uint16_t kind) const;
  Result<Node> node() const;
  Result<std::string_view> large_value(uint64_t number, uint64_t size) const;
  Status damaged(uint64_t number, std::string_view what) const;

  const LmdbTree& tree_;
  std::vector<Place> path_;  // from the root to the leaf of the current record
  int64_t seen_ = 0;
  bool valid_ = false;
  std::string_view key_, value_;
};

}  // namespace cafetiere
