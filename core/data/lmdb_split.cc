// SPDX-License-Identifier: Apache-2.0
// Splits an LMDB file into ranges of keys.
#include "core/data/lmdb_tree.h"

namespace cafetiere {
namespace {

/// The first key of a subtree or, in a leaf, the key of a record.
struct Start {
  std::string key;
  uint64_t page = 0;
};

/// The nodes of the pages in `starts`, which are all at the same depth.
Result<std::vector<Start>> level_below(const LmdbTree& tree, const std::vector<Start>& starts,
                                       int at) {
  const bool leaf = at + 1 == tree.depth;
  const uint64_t most =
      leaf ? uint64_t(tree.records) : tree.file->size() / tree.page_bytes;  // upper bound for a
                                                                            // file
  std::vector<Start> below;
  for (const Start& start : starts) {
    CFT_ASSIGN(const LmdbPage page, tree.page(start.page, at));
    if (below.size() + page.nodes() > most) {
      return tree.damaged(start.page, "has more pages below it than the file");
    }
    for (size_t i = 0; i < page.nodes(); ++i) {
      CFT_ASSIGN(const LmdbNode node, tree.node(page, i));
      const bool says_key = leaf || i > 0;  // otherwise the branch above has it
      below.push_back({says_key ? std::string(node.key) : start.key, leaf ? 0 : node.child()});
    }
  }
  return below;
}

}  // namespace

Result<std::vector<std::string>> LmdbTree::split(int ranges) const {
  constexpr size_t kFine = 40;    // subtrees per range: the sizes of ranges then differ by a few
                                  // percent
  constexpr uint64_t kPart = 50;  // at most 1/kPart of the file is read
  CFT_TRY(check_sorted());
  const auto wanted = size_t(ranges);
  std::vector<Start> starts{{"", root}};
  for (int at = 0; at < depth; ++at) {
    const bool cheap = starts.size() * page_bytes <= file->size() / kPart;
    if (starts.size() >= wanted && (starts.size() >= kFine * wanted || !cheap)) break;
    CFT_ASSIGN(starts, level_below(*this, starts, at));
  }
  std::vector<std::string> keys;
  for (size_t i = 1; i < wanted; ++i) {
    const std::string& key = starts[i * starts.size() / wanted].key;
    if (key > (keys.empty() ? starts[0].key : keys.back())) keys.push_back(key);
  }
  return keys;
}

}  // namespace cafetiere
