// SPDX-License-Identifier: Apache-2.0
// The pages of an LMDB file, read without trusting the file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/data/byte_file.h"

namespace cafetiere {

/// What a page says of a key: where to go on, or its value.
struct LmdbNode {
  std::string_view key;
  uint64_t low = 0;  ///< the value's size; of branches the child's number, with the flags above
  uint16_t flags = 0;
  std::string_view rest;  ///< what follows the key up to the page's end

  uint64_t child() const { return low | uint64_t{flags} << 32; }
};

/// A branch or leaf; it has a node or more.
struct LmdbPage {
  uint64_t number;
  std::string_view bytes;
  std::string buffer;  ///< holds them, unless they lie in memory

  LmdbPage(LmdbPage&&) noexcept = default;  // so large a buffer stays where it is
  LmdbPage& operator=(LmdbPage&&) noexcept = default;

  size_t nodes() const;

 private:
  friend struct LmdbTree;
  LmdbPage() = default;
};

/// Where the main database of an LMDB file is (data version 1, as 64-bit little-endian machines
/// write it). liblmdb follows the numbers of a file wherever they lead; here each is checked first.
struct LmdbTree {
  std::shared_ptr<const ByteFile> file;
  std::string source;  ///< names the file in errors
  uint32_t page_bytes = 0;
  uint64_t root = 0;    ///< the number of the page at which all paths begin
  int depth = 0;        ///< pages on the way to a record; 0 when there are no records
  int64_t records = 0;  ///< as the file says, and no more than it has room for
  bool sorted = true;   ///< keys are in the order of memcmp()

  /// Reads the header.
  static Result<LmdbTree> open(std::shared_ptr<const ByteFile> file, std::string source);

  /// The page at a depth, of 0 to `depth` - 1. Leaves are at the last one and nowhere else, which
  /// ends all cycles.
  Result<LmdbPage> page(uint64_t number, int at) const;
  Result<LmdbNode> node(const LmdbPage& page, size_t index) const;
  /// The value of a leaf's node: part of its page, or with pages of its own, as ByteFile::read().
  Result<std::string_view> value(const LmdbPage& page, const LmdbNode& leaf,
                                 std::string* buffer) const;
  Status damaged(uint64_t page, std::string_view what) const;

  /// At most `ranges` - 1 keys, in order, that cut the database into ranges of about equal size;
  /// fewer where it has fewer records. Reads a fiftieth of the file at most unless it is that small.
  Result<std::vector<std::string>> split(int ranges) const;
  /// An error where there are no ranges of keys, since the file has them in another order.
  Status check_sorted() const;
};

}  // namespace cafetiere
