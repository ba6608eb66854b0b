// SPDX-License-Identifier: Apache-2.0
#include "core/data/lmdb_tree.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace cafetiere {
namespace {

// A page begins with its number (8 bytes), padding (2), what it is (2) and where the offsets of its
// nodes end (2) and its nodes begin (2).
constexpr size_t kPageHeader = 16, kKindAt = 10, kOffsetsEndAt = 12;
constexpr uint16_t kBranch = 1, kLeaf = 2, kOverflow = 4, kMeta = 8, kKinds = 0x6f;

// Pages 0 and 1 are headers; the one of the later transaction counts.
constexpr uint32_t kMagic = 0xBEEFC0DE, kVersion = 1;
constexpr size_t kMagicAt = 16, kVersionAt = 20, kPageBytesAt = 40, kFlagsAt = 92, kDepthAt = 94,
                 kRecordsAt = 120, kRootAt = 128, kTransactionAt = 144, kHeaderEnd = 152;
constexpr uint32_t kMinPage = 512, kMaxPage = 1 << 15;
constexpr uint16_t kSortedDuplicates = 4;
constexpr uint64_t kNoPage = ~uint64_t{0};
constexpr int kMaxDepth = 32;

// A node: 4 bytes of the value's size or the child's number, its flags or 2 more bytes of the number,
// the key's size (2), the key, the value.
constexpr size_t kNodeHeader = 8, kNodeFlagsAt = 4, kKeySizeAt = 6;
constexpr uint16_t kLargeValue = 1, kSubDatabase = 2, kDuplicates = 4;
constexpr int64_t kLeastRecord = kNodeHeader + sizeof(uint16_t);

template <class T>
T number_at(std::string_view bytes, size_t at) {
  T number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

/// Whether `bytes` begin with a header page that we know.
bool is_header(std::string_view bytes) {
  return bytes.size() >= kHeaderEnd && (number_at<uint16_t>(bytes, kKindAt) & kMeta) &&
         number_at<uint32_t>(bytes, kMagicAt) == kMagic &&
         number_at<uint32_t>(bytes, kVersionAt) == kVersion;
}

}  // namespace

Result<LmdbTree> LmdbTree::open(std::string_view file, std::string source) {
  const auto error = [&](std::string_view what) {
    return invalid_argument(fmt::format("{}: {}", source, what));
  };
  if (!is_header(file)) return error("is not an LMDB file of a 64-bit machine, or is damaged");
  LmdbTree tree{.file = file, .source = source};
  tree.page_bytes = number_at<uint32_t>(file, kPageBytesAt);
  if (!std::has_single_bit(tree.page_bytes) || tree.page_bytes < kMinPage ||
      tree.page_bytes > kMaxPage || file.size() < 2 * size_t{tree.page_bytes} ||
      !is_header(file.substr(tree.page_bytes))) {
    return error("has a damaged header");
  }
  const std::string_view other = file.substr(tree.page_bytes);
  const bool later =
      number_at<uint64_t>(other, kTransactionAt) > number_at<uint64_t>(file, kTransactionAt);
  const std::string_view header = later ? other : file;
  tree.root = number_at<uint64_t>(header, kRootAt);
  if (tree.root == kNoPage) return tree;
  if (number_at<uint16_t>(header, kFlagsAt) & kSortedDuplicates) {
    return error("has several values a key (MDB_DUPSORT); give each record a key of its own");
  }
  tree.depth = number_at<uint16_t>(header, kDepthAt);
  const auto records = number_at<uint64_t>(header, kRecordsAt);
  tree.records = static_cast<int64_t>(records);
  if (tree.depth < 1 || tree.depth > kMaxDepth || records > file.size() / kLeastRecord) {
    return error("has a damaged header, or lacks its end");
  }
  return tree;
}

/// What a page says of a key: where to go on, or its value.
struct LmdbCursor::Node {
  std::string_view key;
  uint64_t low = 0;  // the value's size; of branches the child's number, with the flags above
  uint16_t flags = 0;
  std::string_view rest;  // what follows the key up to the page's end

  uint64_t child() const { return low | uint64_t{flags} << 32; }
};

size_t LmdbCursor::Place::nodes() const {
  return (number_at<uint16_t>(page, kOffsetsEndAt) - kPageHeader) / sizeof(uint16_t);
}

Status LmdbCursor::first() {
  path_.clear();
  seen_ = 0;
  valid_ = false;
  if (tree_.depth == 0) return {};
  CFT_TRY(go_down(tree_.root));
  return read_record();
}

Status LmdbCursor::next() {
  valid_ = false;
  while (!path_.empty() && ++path_.back().index == path_.back().nodes()) path_.pop_back();
  if (path_.empty()) return {};
  if (std::ssize(path_) < tree_.depth) {
    CFT_ASSIGN(const Node branch, node());
    CFT_TRY(go_down(branch.child()));
  }
  return read_record();
}

/// To the first leaf below a page; leaves are at the tree's depth and nowhere else, which ends all
/// cycles.
Status LmdbCursor::go_down(uint64_t number) {
  while (true) {
    const bool leaf = std::ssize(path_) + 1 == tree_.depth;
    CFT_ASSIGN(Place place, open_page(number, leaf ? kLeaf : kBranch));
    path_.push_back(place);
    if (leaf) return {};
    CFT_ASSIGN(const Node branch, node());
    number = branch.child();
  }
}

Status LmdbCursor::read_record() {
  const uint64_t number = path_.back().number;
  if (++seen_ > tree_.records) return damaged(number, "holds more records than the header says");
  CFT_ASSIGN(const Node leaf, node());
  if (leaf.flags & (kSubDatabase | kDuplicates)) {
    return damaged(number, "holds a database in place of a value");
  }
  if (leaf.flags & kLargeValue) {
    if (leaf.rest.size() < sizeof(uint64_t)) return damaged(number, "ends within a record");
    CFT_ASSIGN(value_, large_value(number_at<uint64_t>(leaf.rest, 0), leaf.low));
  } else {
    if (leaf.rest.size() < leaf.low) return damaged(number, "ends within a record");
    value_ = leaf.rest.substr(0, leaf.low);
  }
  key_ = leaf.key;
  valid_ = true;
  return {};
}

Result<LmdbCursor::Place> LmdbCursor::open_page(uint64_t number, uint16_t kind) const {
  if (number >= tree_.file.size() / tree_.page_bytes) return damaged(number, "lies outside of it");
  const Place place{number, tree_.file.substr(number * tree_.page_bytes, tree_.page_bytes)};
  if ((number_at<uint16_t>(place.page, kKindAt) & kKinds) != kind ||
      number_at<uint64_t>(place.page, 0) != number) {
    return damaged(number, "is not what it should be");
  }
  if (kind == kOverflow) return place;
  const auto end = number_at<uint16_t>(place.page, kOffsetsEndAt);
  if (end < kPageHeader + sizeof(uint16_t) || end > tree_.page_bytes) {
    return damaged(number, "has no records");
  }
  return place;
}

/// The node at the end of the path.
Result<LmdbCursor::Node> LmdbCursor::node() const {
  const auto& [number, page, index] = path_.back();
  const auto at = number_at<uint16_t>(page, kPageHeader + index * sizeof(uint16_t));
  if (at > page.size() - kNodeHeader) return damaged(number, "names a place outside of it");
  const std::string_view bytes = page.substr(at);
  const auto key_size = number_at<uint16_t>(bytes, kKeySizeAt);
  if (key_size > bytes.size() - kNodeHeader) return damaged(number, "ends within a key");
  return Node{.key = bytes.substr(kNodeHeader, key_size),
              .low = number_at<uint32_t>(bytes, 0),
              .flags = number_at<uint16_t>(bytes, kNodeFlagsAt),
              .rest = bytes.substr(kNodeHeader + key_size)};
}

/// A value that has pages of its own.
Result<std::string_view> LmdbCursor::large_value(uint64_t number, uint64_t size) const {
  CFT_TRY(open_page(number, kOverflow).status());
  const size_t at = number * tree_.page_bytes + kPageHeader;
  if (size > tree_.file.size() - at) return damaged(number, "holds a value that the file cuts off");
  return tree_.file.substr(at, size);
}

Status LmdbCursor::damaged(uint64_t number, std::string_view what) const {
  return invalid_argument(
      fmt::format("{}: page {} {}; the file is damaged: copy it again or rebuild the database",
                  tree_.source, number, what));
}

}  // namespace cafetiere
