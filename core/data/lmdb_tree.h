// SPDX-License-Identifier: Apache-2.0
// The pages of an LMDB file, all validated when read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/data/byte_file.h"

namespace cafetiere {

/// An entry of a page: a key with its child page or its value.
struct LmdbNode {
  std::string_view key;
  uint64_t low = 0;  ///< leaf: size of the value; branch: the child's number, whose upper bits are
                     ///< in the flags
  uint16_t flags = 0;
  std::string_view rest;  ///< the bytes after the key, up to the end of the page

  uint64_t child() const { return low | uint64_t{flags} << 32; }
};

/// A branch or leaf page, with at least one node.
struct LmdbPage {
  uint64_t number;
  std::string_view bytes;
  std::string buffer;  ///< the bytes, unless the file is mapped

  LmdbPage(LmdbPage&&) noexcept = default;  // pages are large enough that moving the string does
                                            // not move the bytes
  LmdbPage& operator=(LmdbPage&&) noexcept = default;

  size_t nodes() const;

 private:
  friend struct LmdbTree;
  LmdbPage() = default;
};

/// The main database of an LMDB file (data version 1, as written by 64-bit little-endian machines).
/// liblmdb follows a file's page numbers unchecked; here each is checked first.
struct LmdbTree {
  std::shared_ptr<const ByteFile> file;
  std::string source;  ///< names the file in errors
  uint32_t page_bytes = 0;
  uint64_t root = 0;    ///< the page number of the tree's root
  int depth = 0;        ///< pages on the path to a record; 0 if there are no records
  int64_t records = 0;  ///< from the file's header; at most what fits into the file
  bool sorted = true;   ///< keys are in memcmp() order

  /// Reads the header.
  static Result<LmdbTree> open(std::shared_ptr<const ByteFile> file, std::string source);

  /// The page at depth `at`, from 0 to `depth` - 1. Leaves are allowed only at the last depth,
  /// which rules out cycles.
  Result<LmdbPage> page(uint64_t number, int at) const;
  Result<LmdbNode> node(const LmdbPage& page, size_t index) const;
  /// The value of a leaf node: in its page or on overflow pages, returned as by ByteFile::read().
  Result<std::string_view> value(const LmdbPage& page, const LmdbNode& leaf,
                                 std::string* buffer) const;
  Status damaged(uint64_t page, std::string_view what) const;

  /// At most `ranges` - 1 keys, in order, that split the database into ranges of about equal size;
  /// fewer if it has fewer records. Reads at most a fiftieth of a file unless it is small.
  Result<std::vector<std::string>> split(int ranges) const;
  /// An error if the file's keys are in another order, so that ranges of keys do not exist.
  Status check_sorted() const;
};

}  // namespace cafetiere
