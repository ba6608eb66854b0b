// SPDX-License-Identifier: Apache-2.0
#include "core/data/lmdb_tree.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace cafetiere {
namespace {

// A page header: its number (8 bytes), padding (2), its type (2), the end of the offsets of its
// nodes (2) and the start of its nodes (2).
constexpr size_t kPageHeader = 16, kKindAt = 10, kOffsetsEndAt = 12;
constexpr uint16_t kBranch = 1, kLeaf = 2, kOverflow = 4, kMeta = 8, kKinds = 0x6f;

// Pages 0 and 1 are headers; the one with the later transaction is valid.
constexpr uint32_t kMagic = 0xBEEFC0DE, kVersion = 1;
constexpr size_t kMagicAt = 16, kVersionAt = 20, kPageBytesAt = 40, kFlagsAt = 92, kDepthAt = 94,
                 kRecordsAt = 120, kRootAt = 128, kTransactionAt = 144, kHeaderEnd = 152;
constexpr uint32_t kMinPage = 512, kMaxPage = 1 << 15;
constexpr uint16_t kReverseKeys = 2, kSortedDuplicates = 4, kIntegerKeys = 8;
constexpr uint64_t kNoPage = ~uint64_t{0};
constexpr int kMaxDepth = 32;

// A node: size of the value or number of the child (4 bytes), flags or 2 more bytes of that number,
// size of the key (2), the key, the value.
constexpr size_t kNodeHeader = 8, kNodeFlagsAt = 4, kKeySizeAt = 6;
constexpr uint16_t kLargeValue = 1, kSubDatabase = 2, kDuplicates = 4;
constexpr int64_t kLeastRecord = kNodeHeader + sizeof(uint16_t);

template <class T>
T number_at(std::string_view bytes, size_t at) {
  T number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

/// Whether `bytes` start with a header page of a known version.
bool is_header(std::string_view bytes) {
  return bytes.size() >= kHeaderEnd && (number_at<uint16_t>(bytes, kKindAt) & kMeta) &&
         number_at<uint32_t>(bytes, kMagicAt) == kMagic &&
         number_at<uint32_t>(bytes, kVersionAt) == kVersion;
}

/// Whether `bytes` start with the header of page `number` of type `kind`.
bool is_page(std::string_view bytes, uint64_t number, uint16_t kind) {
  return (number_at<uint16_t>(bytes, kKindAt) & kKinds) == kind &&
         number_at<uint64_t>(bytes, 0) == number;
}

}  // namespace

Result<LmdbTree> LmdbTree::open(std::shared_ptr<const ByteFile> file, std::string source) {
  const auto error = [&](std::string_view what) {
    return invalid_argument(fmt::format("{}: {}", source, what));
  };
  std::string first_buffer, second_buffer;
  const uint64_t size = file->size();
  std::string_view first, second;
  if (size >= kHeaderEnd) {
    CFT_ASSIGN(first, file->read(0, kHeaderEnd, &first_buffer));
  }
  if (!is_header(first)) return error("is not an LMDB file of a 64-bit machine, or is damaged");
  LmdbTree tree{.file = file, .source = source};
  tree.page_bytes = number_at<uint32_t>(first, kPageBytesAt);
  const bool sane = std::has_single_bit(tree.page_bytes) && tree.page_bytes >= kMinPage &&
                    tree.page_bytes <= kMaxPage && size >= 2 * uint64_t{tree.page_bytes};
  if (sane) {
    CFT_ASSIGN(second, file->read(tree.page_bytes, kHeaderEnd, &second_buffer));
  }
  if (!is_header(second)) return error("has a damaged header");
  const bool later =
      number_at<uint64_t>(second, kTransactionAt) > number_at<uint64_t>(first, kTransactionAt);
  const std::string_view header = later ? second : first;
  tree.root = number_at<uint64_t>(header, kRootAt);
  if (tree.root == kNoPage) return tree;
  const auto flags = number_at<uint16_t>(header, kFlagsAt);
  if (flags & kSortedDuplicates) {
    return error("has several values for a key (MDB_DUPSORT); give each record its own key");
  }
  tree.sorted = !(flags & (kReverseKeys | kIntegerKeys));
  tree.depth = number_at<uint16_t>(header, kDepthAt);
  const auto records = number_at<uint64_t>(header, kRecordsAt);
  tree.records = static_cast<int64_t>(records);
  if (tree.depth < 1 || tree.depth > kMaxDepth || records > size / kLeastRecord) {
    return error("has a damaged header, or is truncated");
  }
  return tree;
}

size_t LmdbPage::nodes() const {
  return (number_at<uint16_t>(bytes, kOffsetsEndAt) - kPageHeader) / sizeof(uint16_t);
}

Result<LmdbPage> LmdbTree::page(uint64_t number, int at) const {
  if (number >= file->size() / page_bytes) return damaged(number, "lies outside of it");
  LmdbPage page;
  page.number = number;
  CFT_ASSIGN(page.bytes, file->read(number * page_bytes, page_bytes, &page.buffer));
  if (!is_page(page.bytes, number, at + 1 == depth ? kLeaf : kBranch)) {
    return damaged(number, "is not what it should be");
  }
  const auto end = number_at<uint16_t>(page.bytes, kOffsetsEndAt);
  if (end < kPageHeader + sizeof(uint16_t) || end > page_bytes) {
    return damaged(number, "has no records");
  }
  return page;
}

Result<LmdbNode> LmdbTree::node(const LmdbPage& page, size_t index) const {
  const auto at = number_at<uint16_t>(page.bytes, kPageHeader + index * sizeof(uint16_t));
  if (at > page.bytes.size() - kNodeHeader) {
    return damaged(page.number, "names a place outside of it");
  }
  const std::string_view bytes = page.bytes.substr(at);
  const auto key_size = number_at<uint16_t>(bytes, kKeySizeAt);
  if (key_size > bytes.size() - kNodeHeader) return damaged(page.number, "ends within a key");
  return LmdbNode{.key = bytes.substr(kNodeHeader, key_size),
                  .low = number_at<uint32_t>(bytes, 0),
                  .flags = number_at<uint16_t>(bytes, kNodeFlagsAt),
                  .rest = bytes.substr(kNodeHeader + key_size)};
}

Result<std::string_view> LmdbTree::value(const LmdbPage& page, const LmdbNode& leaf,
                                         std::string* buffer) const {
  if (leaf.flags & (kSubDatabase | kDuplicates)) {
    return damaged(page.number, "holds a database instead of a value");
  }
  const bool large = leaf.flags & kLargeValue;
  if (leaf.rest.size() < (large ? sizeof(uint64_t) : leaf.low)) {
    return damaged(page.number, "ends within a record");
  }
  if (!large) return leaf.rest.substr(0, leaf.low);
  const auto number = number_at<uint64_t>(leaf.rest, 0);
  if (number >= file->size() / page_bytes) return damaged(number, "lies outside of it");
  const uint64_t at = number * page_bytes;
  if (leaf.low > file->size() - at - kPageHeader) {
    return damaged(number, "holds a value that is truncated");
  }
  CFT_ASSIGN(const std::string_view bytes, file->read(at, kPageHeader + leaf.low, buffer));
  if (!is_page(bytes, number, kOverflow)) return damaged(number, "is not what it should be");
  return bytes.substr(kPageHeader);
}

Status LmdbTree::damaged(uint64_t page, std::string_view what) const {
  return invalid_argument(
      fmt::format("{}: page {} {}; the file is damaged: copy it again or rebuild the database",
                  source, page, what));
}

Status LmdbTree::check_sorted() const {
  if (sorted) return {};
  return invalid_argument(
      fmt::format("{}: its keys have a special order (MDB_REVERSEKEY or MDB_INTEGERKEY), in which "
                  "ranges of keys cannot be read; rebuild it without these flags",
                  source));
}

}  // namespace cafetiere
