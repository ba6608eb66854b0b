// SPDX-License-Identifier: Apache-2.0
#include "core/data/lmdb_cursor.h"

#include <utility>

namespace cafetiere {

Status LmdbCursor::first() {
  path_.clear();
  seen_ = 0;
  valid_ = false;
  if (range_.from || range_.to) CFT_TRY(tree_.check_sorted());
  if (tree_.depth == 0) return {};
  CFT_TRY(go_down(tree_.root, range_.from ? &*range_.from : nullptr));
  return settle();
}

Status LmdbCursor::seek(std::string_view key) {
  const std::optional<std::string> from = std::exchange(range_.from, std::string(key));
  Status status = first();
  range_.from = from;
  return status;
}

Status LmdbCursor::next() {
  valid_ = false;
  if (path_.empty()) return {};
  ++path_.back().index;
  return settle();
}

/// Descends from a page to a leaf: the first one, or the one that would contain `key`.
Status LmdbCursor::go_down(uint64_t number, const std::string* key) {
  while (true) {
    CFT_ASSIGN(LmdbPage page, tree_.page(number, int(path_.size())));
    Place& place = path_.emplace_back(Place{std::move(page)});
    if (key) {
      CFT_ASSIGN(place.index, index_of(place.page, *key));
    }
    if (std::ssize(path_) == tree_.depth) return {};
    CFT_ASSIGN(const LmdbNode branch, tree_.node(place.page, place.index));
    number = branch.child();
  }
}

/// The lower bound of `key`: in a leaf, the first node whose key is not less, or the end; in a
/// branch, the last node whose key is not greater. The first node of a branch has no key.
Result<size_t> LmdbCursor::index_of(const LmdbPage& page, std::string_view key) const {
  const bool leaf = std::ssize(path_) == tree_.depth;
  size_t low = leaf ? 0 : 1, high = page.nodes();
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    CFT_ASSIGN(const LmdbNode node, tree_.node(page, middle));
    const bool before = leaf ? node.key < key : node.key <= key;
    (before ? low : high) = before ? middle + 1 : middle;
  }
  return leaf ? low : low - 1;
}

/// Moves to the record at the end of the path, or to the first one after it.
Status LmdbCursor::settle() {
  while (!path_.empty() && path_.back().index >= path_.back().page.nodes()) {
    path_.pop_back();
    if (!path_.empty()) ++path_.back().index;
  }
  if (path_.empty()) return {};
  if (std::ssize(path_) < tree_.depth) {
    const auto& [page, index] = path_.back();
    CFT_ASSIGN(const LmdbNode branch, tree_.node(page, index));
    CFT_TRY(go_down(branch.child(), nullptr));
  }
  return read_record();
}

Status LmdbCursor::read_record() {
  const auto& [page, index] = path_.back();
  CFT_ASSIGN(const LmdbNode leaf, tree_.node(page, index));
  if (range_.to && leaf.key >= *range_.to) {
    path_.clear();
    return {};
  }
  if (++seen_ > tree_.records) {
    return tree_.damaged(page.number, "holds more records than the header says");
  }
  value_ = {};
  if (values_) {
    CFT_ASSIGN(value_, tree_.value(page, leaf, &buffer_));
  }
  key_ = leaf.key;
  valid_ = true;
  return {};
}

}  // namespace cafetiere
